import { type EventStore, type FeedItem, type StoredEvent, Unavailable } from '../../ports.ts'
import { batches } from '../batches.ts'

/** One transaction each: as many as in a batch of the projector. */
const REBUILD_BATCH_MAX = 4_000

export type EventRange = {
  /** The position to continue after: -1, or one that the store has returned. */
  readonly after: bigint
  /** A position that the log has reached. */
  readonly upTo: bigint
  readonly categories: readonly string[]
  readonly signal: AbortSignal
}

export type RangeBatch = { readonly events: readonly StoredEvent[]; readonly position: bigint }

const reaches = (item: FeedItem, upTo: bigint): boolean => {
  if (item.kind === 'event') return item.event.position >= upTo
  return item.kind === 'checkpoint' && item.position >= upTo
}

/**
 * Yields every event of the categories. `position` of the last batch is `upTo`: a reader that is reported to have
 * caught up has everything that the log had at the beginning. Throws when the signal aborts.
 */
export async function* eventsInRange(
  store: Pick<EventStore, 'subscribe'>,
  { after, upTo, categories, signal }: EventRange,
): AsyncGenerator<RangeBatch> {
  const ended = new AbortController()
  const items = store.subscribe({
    after: after < 0n ? 'start' : after,
    categories,
    signal: AbortSignal.any([signal, ended.signal]),
  })
  try {
    for await (const batch of batches(items, REBUILD_BATCH_MAX)) {
      const events = batch
        .flatMap(item => (item.kind === 'event' ? [item.event] : []))
        .filter(({ position }) => position <= upTo)
      const isLast = batch.some(item => item.kind === 'caught_up' || reaches(item, upTo))
      const position = isLast ? upTo : events.at(-1)?.position
      if (position !== undefined) yield { events, position }
      if (isLast) return
    }
    // A subscription that ends early would otherwise leave a gap.
    signal.throwIfAborted()
    throw new Unavailable('event store', { effect: 'none', cause: new Error('The subscription ended early.') })
  } finally {
    ended.abort()
  }
}
