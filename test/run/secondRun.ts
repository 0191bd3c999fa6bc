import type { FileOutcome } from './workerProcess.ts'

/**
 * The second run of failed test files. An unsteady case among ten thousand must not cost a day, so a file that failed beside
 * others is run again, alone. Each file that passes then is reported with its first error: it is a defect to be mended.
 */

/** Beyond so many failed files the change is broken rather than one of its cases unsteady: none of them is run again. */
const AGAIN_MAX = 5

export type Results = {
  /** One outcome for each file: that of the second run if there was one. */
  readonly final: readonly FileOutcome[]
  /** The first outcomes of the files that passed in the second run. */
  readonly unsteady: readonly FileOutcome[]
}

const hasFailed = ({ failures }: FileOutcome): boolean => failures.length > 0

/** The files to run again, a file whose worker ended or hung among them. */
export const filesToRunAgain = (outcomes: readonly FileOutcome[]): readonly string[] => {
  const failed = outcomes.filter(hasFailed).map(({ file }) => file)
  return failed.length <= AGAIN_MAX ? failed : []
}

/** A file that fails in its second run too, whichever of its cases, has failed. */
export const resultsOf = (first: readonly FileOutcome[], second: readonly FileOutcome[]): Results => {
  const again = new Map(second.map(outcome => [outcome.file, outcome]))
  const passedAgain = (file: string): boolean => (again.get(file)?.failures ?? ['none']).length === 0
  return {
    final: first.map(outcome => again.get(outcome.file) ?? outcome),
    unsteady: first.filter(({ file }) => passedAgain(file)),
  }
}
