/**
 * The number of events that a feed processes at once. A dependency may not finish a batch in time because its events are large: the
 * limit is halved then, and doubled by a batch of that size which succeeds, so the feed neither repeats the same batch forever nor
 * remains slow after an outage.
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
