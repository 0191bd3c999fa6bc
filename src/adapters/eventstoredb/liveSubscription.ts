import type { FeedItem, StoredEvent } from '../../ports.ts'
import { type LiveItem, LiveWindow } from './liveWindow.ts'

/**
 * One live subscription for all feeds of a process, so each event crosses the connection and is decoded once. A feed
 * catches up by a subscription of its own, and joins at an event that both have:
 *
 *   own subscription ── live, and the window continues where the feed is ──▶ shared
 *          ▲                                                                    │
 *          └──────────── fell behind: the window has lost its next event ───────┘
 *
 * The window (liveWindow.ts) has every event after a known one, so a feed that has reached this event misses nothing,
 * and no position is computed. An interruption is an item of the window: each feed gets it, and stays. The subscription
 * begins with the second live feed, since one feed has nothing to share, and ends with the last.
 */

const SHARING_MIN = 2

/** A feed that has caught up. `wake` ends its wait for more items. */
export type LiveFeed = { wake: () => void }

/** The place of a feed in the window. */
export type Place = { readonly running: Running; number: number }

type Running = { readonly window: LiveWindow; readonly stop: AbortController; hasEnded: boolean }

/** Reads the live log from its end until the signal: events with their bytes, `caught_up` and `interrupted`. */
type ReadFromEnd = (signal: AbortSignal) => AsyncIterable<readonly FeedItem[]>

export class LiveSubscription {
  private readonly readFromEnd: ReadFromEnd
  private readonly feeds = new Set<LiveFeed>()
  private running: Running | undefined

  constructor(readFromEnd: ReadFromEnd) {
    this.readFromEnd = readFromEnd
  }

  /** Where a feed that has caught up to this position can join, perhaps with its next item; undefined if it cannot yet. */
  placeOf(feed: LiveFeed, position: bigint): Place | undefined {
    this.feeds.add(feed)
    if (this.running === undefined && this.feeds.size >= SHARING_MIN) this.running = this.start()
    const { running } = this
    const number = running?.window.numberAfter(position)
    return running === undefined || number === undefined ? undefined : { running, number }
  }

  /** Also ends the wait of the feed. */
  leave(feed: LiveFeed): void {
    this.feeds.delete(feed)
    feed.wake()
    if (this.feeds.size > 0) return
    this.running?.stop.abort()
    this.running = undefined
  }

  private start(): Running {
    const running: Running = { window: new LiveWindow(), stop: new AbortController(), hasEnded: false }
    void this.read(running)
    return running
  }

  private async read(running: Running): Promise<void> {
    try {
      for await (const items of this.readFromEnd(running.stop.signal)) {
        running.window.push(items)
        this.wakeAll()
      }
    } catch {
      // The cause may be an event that only some feeds want: the subscription of each feed shows whether it is theirs.
    }
    running.hasEnded = true
    if (this.running === running) this.running = undefined
    this.wakeAll()
  }

  private wakeAll(): void {
    for (const { wake } of this.feeds) wake()
  }
}

/** The items from the place on, in arrays, until the feed falls behind, the subscription fails, or the signal aborts. */
export async function* itemsFrom(
  place: Place,
  feed: LiveFeed,
  signal: AbortSignal,
): AsyncGenerator<readonly LiveItem[]> {
  const { running } = place
  while (!signal.aborted) {
    const items = running.window.from(place.number)
    if (items === undefined) return
    place.number += items.length
    if (items.length > 0) yield items
    else if (running.hasEnded) return
    else await new Promise<void>(resolve => void (feed.wake = resolve))
  }
}

type Selection = { readonly isWanted: (event: StoredEvent) => boolean; readonly withBytes: boolean }

/** The items for one feed: the wanted events that it does not have, and a checkpoint instead of the others. */
export const selected = (
  items: readonly LiveItem[],
  passed: bigint,
  { isWanted, withBytes }: Selection,
): FeedItem[] => {
  const selection: FeedItem[] = []
  let unwanted = passed
  const addCheckpoint = (): void => {
    if (unwanted > passed) selection.push({ kind: 'checkpoint', position: unwanted })
    unwanted = passed
  }
  for (const item of items) {
    const { plain } = item
    if (plain.kind === 'event' && !isWanted(plain.event)) unwanted = plain.event.position
    else if (plain.kind === 'event' && plain.event.position > passed) {
      unwanted = passed
      selection.push(withBytes ? item.withBytes : plain)
    } else if (plain.kind !== 'event') {
      addCheckpoint()
      selection.push(plain)
    }
  }
  addCheckpoint()
  return selection
}
