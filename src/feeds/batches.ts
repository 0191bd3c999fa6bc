import type { FeedItem, StoredEvent } from '../ports.ts'

/** The most items that are read ahead in one turn of the event loop, so that responses are handled in between. */
const ITEMS_PER_TURN = 256

const nextTurn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

/**
 * Groups the items of a source into batches: those that came since the last one, never waiting for more. One batch at
 * most is read ahead. `arrived` is called for each item when it is read. `later` gets, with each batch, the function
 * that starts the read-ahead; without `later` it starts with the batch. Long because the reader of the source and the
 * generator share one buffer.
 */
export async function* batches<T>(
  source: AsyncIterable<T>,
  sizeMax: number,
  arrived: (item: T) => void = () => undefined,
  later?: (readAhead: () => void) => void,
): AsyncGenerator<T[]> {
  let waiting: T[] = []
  let ended = false
  let wake = Promise.withResolvers<void>()
  let space = Promise.withResolvers<void>()
  let abandoned = false

  const fill = async (): Promise<void> => {
    for await (const item of source) {
      if (abandoned) return
      waiting.push(item)
      arrived(item)
      wake.resolve()
      if (later !== undefined && waiting.length % ITEMS_PER_TURN === 0) await nextTurn()
      if (waiting.length < sizeMax) continue
      space = Promise.withResolvers()
      await space.promise
      if (abandoned) return
    }
  }
  const filling = fill().finally(() => {
    ended = true
    wake.resolve()
  })
  // A failure is thrown below, after the items that came before it.
  filling.catch(() => undefined)

  try {
    for (;;) {
      await wake.promise
      const batch = waiting
      waiting = []
      if (!ended) wake = Promise.withResolvers()
      const { resolve: readAhead } = space
      if (later === undefined) readAhead()
      else later(readAhead)
      if (batch.length > 0) yield batch
      else if (ended) break
      readAhead()
    }
    await filling
  } finally {
    abandoned = true
    space.resolve()
  }
}

/** The events of a batch, the position after it, and whether the subscription has reached the end of the log, or was interrupted. */
export const summaryOf = (batch: readonly FeedItem[]) => {
  const events: StoredEvent[] = []
  let position: bigint | undefined
  let caughtUp = false
  let interruption: unknown
  for (const item of batch) {
    // Any item after an interruption shows that it is over.
    interruption = item.kind === 'interrupted' ? item.error : undefined
    if (item.kind === 'caught_up') caughtUp = true
    if (item.kind === 'interrupted') caughtUp = false
    if (item.kind === 'event') events.push(item.event)
    if (item.kind === 'event') position = item.event.position
    if (item.kind === 'checkpoint') position = item.position
  }
  return { events, position, caughtUp, interruption }
}
