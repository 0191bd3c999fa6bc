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

const withFile = ({ file, failures }: FileOutcome): string[] => failures.map(text => `${text}\n\n     in ${file}`)

const numbered = (text: string, index: number): string => text.replace(/^\s*1\)/, `\n  ${index + 1})`)

/** Said above the second run. */
export const secondRunText = (files: readonly string[]): string =>
  `\n  Failed, and run again alone:\n\n${files.map(file => `    ${file}`).join('\n')}\n`

/** The first errors of the files that passed in the second run; empty if there are none. */
export const unsteadyText = (unsteady: readonly FileOutcome[]): string => {
  if (unsteady.length === 0) return ''
  const errors = unsteady.flatMap(withFile).map(numbered)
  return `\n  Failed beside others, passed alone (each is a defect to be mended):\n${errors.join('\n')}\n`
}

/** The failures of all files, numbered, then the counts in mocha's two lines, which `.ci/run` reads. */
export const summaryText = (outcomes: readonly FileOutcome[], others: readonly string[], tookMs: number): string => {
  const all = [...outcomes.flatMap(withFile), ...others].map(numbered)
  const passed = outcomes.reduce((sum, end) => sum + end.passed, 0)
  return `${all.join('\n')}\n\n  ${passed} passing (${durationOf(tookMs)})\n  ${all.length} failing\n`
}
