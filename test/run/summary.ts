import type { FileEnd } from './workerProcess.ts'

/** The printed texts of the runner. */

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

export type Count = { readonly done: number; readonly of: number }

/** The output of a file, and a line with its result. */
export const fileText = ({ file, passed, failures, tookMs, output }: FileEnd, { done, of }: Count): string =>
  `${output.trimEnd()}\n\n[${done}/${of}] ${file}: ${passed} passed, ${failures.length} failed, ${secondsOf(tookMs)} s\n`

/** `seconds` by file. */
export const slowestText = (seconds: Readonly<Record<string, number>>): string => {
  const slowest = Object.entries(seconds)
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, SLOWEST_FILES)
  const lines = slowest.map(([file, time]) => `${time.toFixed(1).padStart(SECONDS_COLUMN)} s  ${file}`)
  return `\n  The ${slowest.length} slowest files:\n\n${lines.join('\n')}\n`
}

/** The failures of all files, numbered, and at the end the two lines in which mocha counts. */
export const summaryText = (ends: readonly FileEnd[], others: readonly string[], tookMs: number): string => {
  const ofFiles = ends.flatMap(({ file, failures }) => failures.map(text => `${text}\n\n     in ${file}`))
  const all = [...ofFiles, ...others].map((text, index) => text.replace(/^\s*1\)/, `\n  ${index + 1})`))
  const passed = ends.reduce((sum, end) => sum + end.passed, 0)
  return `${all.join('\n')}\n\n  ${passed} passing (${durationOf(tookMs)})\n  ${all.length} failing\n`
}
