/** The figures of several rounds: their median, and their range as a measure of how noisy the machine was. */

export type Spread = {
  readonly median: number
  readonly min: number
  readonly max: number
  /** In the order in which they were measured. */
  readonly rounds: readonly number[]
}

/** The mean of the middle two if their number is even; NaN if there are none. */
export const medianOf = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const upper = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
  const lower = sorted[Math.ceil(sorted.length / 2) - 1] ?? Number.NaN
  return (lower + upper) / 2
}

export const spreadOf = (rounds: readonly number[]): Spread => ({
  median: medianOf(rounds),
  min: Math.min(...rounds),
  max: Math.max(...rounds),
  rounds,
})

/**
 * The ratio round by round, because the two sides of one round had the same machine. Figures without a partner in every
 * round are compared by their medians.
 */
export const ratioOf = (ours: readonly number[], reference: readonly number[]): Spread =>
  ours.length === reference.length
    ? spreadOf(ours.map((value, round) => value / (reference[round] ?? Number.NaN)))
    : spreadOf([medianOf(ours) / medianOf(reference)])
