import type { FileOutcome } from './workerProcess.ts'

/** The texts that the runner prints. */

const SLOWEST_FILES = 20
const MS_PER_SECOND = 1_000
const SECONDS_PER_MINUTE = 60
const SECONDS_COLUMN = 8

const secondsOf = (ms: number): string => (ms / MS_PER_SECOND).toFixed(1)

const durationOf = (ms: number): string => {
  const seconds = Math.round(ms / MS_PER_SECOND)
  return seconds < SECONDS_PER_MINUTE
    ? `${seconds}s`
    : `${Math.floor(seconds / SECONDS_PER_MINUTE)}m ${seconds % SECONDS_PER_MINUTE}s`
}

export type Progress = { readonly done: number; readonly total: number }

/** The output of a file, followed by a line with its result. */
export const fileText = ({ file, passed, failures, tookMs, output }: FileOutcome, { done, total }: Progress): string =>
  `${output.trimEnd()}\n\n[${done}/${total}] ${file}: ${passed} passed, ${failures.length} failed, ${secondsOf(tookMs)} s\n`

/** `seconds` by file. */
export const slowestText = (seconds: Readonly<Record<string, number>>): string => {
  const slowest = Object.entries(seconds)
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, SLOWEST_FILES)
  const lines = slowest.map(([file, time]) => `${time.toFixed(1).padStart(SECONDS_COLUMN)} s  ${file}`)
  return `\n  The ${slowest.length} slowest files:\n\n${lines.join('\n')}\n`
}

/** The failures of all files, numbered, then the counts in mocha's two lines, which `.ci/run` reads. */
export const summaryText = (outcomes: readonly FileOutcome[], others: readonly string[], tookMs: number): string => {
  const ofFiles = outcomes.flatMap(({ file, failures }) => failures.map(text => `${text}\n\n     in ${file}`))
  const all = [...ofFiles, ...others].map((text, index) => text.replace(/^\s*1\)/, `\n  ${index + 1})`))
  const passed = outcomes.reduce((sum, end) => sum + end.passed, 0)
  return `${all.join('\n')}\n\n  ${passed} passing (${durationOf(tookMs)})\n  ${all.length} failing\n`
}
