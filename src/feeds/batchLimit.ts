/**
 * How many events a feed processes at once: halved when a dependency does not finish a batch in time, doubled when one
 * of that size succeeds, so that the same batch is not repeated forever, nor the feed slow after an outage.
 */
export const createBatchLimit = () => {
  let limit = Number.POSITIVE_INFINITY
  return {
    of: (most: number): number => Math.min(most, limit),
    succeeded: (events: number): void => {
      if (events >= limit) limit *= 2
    },
    failed: (events: number): void => {
      limit = Math.max(1, Math.floor(events / 2))
    },
  }
}
export type BatchLimit = ReturnType<typeof createBatchLimit>
