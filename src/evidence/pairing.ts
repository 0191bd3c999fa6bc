import { type EventStore, type StoredEvent, Unavailable } from '../ports.ts'
import type { IndexedLeaf } from './leaves.ts'

/** The events of the log beside the leaves that were signed of them, by position, read as streams. */

/** A leaf without an event: the log lacks it. An event without a leaf: it was not signed. One of them is always there. */
export type Pair = { readonly leaf?: IndexedLeaf; readonly event?: StoredEvent }

/** Every event up to a position, with its bytes. Streams of the store itself, whose names begin with $, are not among them. */
export async function* eventsUpTo(
  store: Pick<EventStore, 'subscribe'>,
  position: bigint,
  signal: AbortSignal,
): AsyncGenerator<StoredEvent> {
  const left = new AbortController()
  const items = store.subscribe({ after: 'start', withBytes: true, signal: AbortSignal.any([signal, left.signal]) })
  try {
    for await (const item of items) {
      if (item.kind === 'interrupted') throw new Unavailable('event store', { effect: 'none', cause: item.error })
      if (item.kind === 'caught_up') break
      if (item.kind !== 'event') continue
      if (item.event.position > position) break
      yield item.event
    }
    signal.throwIfAborted()
  } finally {
    left.abort()
  }
}

/** Joins two streams that ascend by position. */
export async function* pairsOf(
  leaves: AsyncIterable<IndexedLeaf>,
  events: AsyncIterable<StoredEvent>,
): AsyncGenerator<Pair> {
  const [left, right] = [leaves[Symbol.asyncIterator](), events[Symbol.asyncIterator]()]
  let [leaf, event] = [await left.next(), await right.next()]
  try {
    while (!leaf.done || !event.done) {
      const hasLeaf = !leaf.done && (event.done === true || leaf.value.position <= event.value.position)
      const hasEvent = !event.done && (leaf.done === true || event.value.position <= leaf.value.position)
      yield {
        ...(hasLeaf && !leaf.done && { leaf: leaf.value }),
        ...(hasEvent && !event.done && { event: event.value }),
      }
      if (hasLeaf) leaf = await left.next()
      if (hasEvent) event = await right.next()
    }
  } finally {
    await left.return?.(undefined)
    await right.return?.(undefined)
  }
}
