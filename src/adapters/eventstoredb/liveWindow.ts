import type { FeedItem } from '../../ports.ts'

/**
 * The newest part of the live log, in bounded memory, which many feeds read at their own speed by the numbers of its
 * items. A feed whose next item was removed has fallen behind.
 */

const ITEMS_MAX = 2_000
const BYTES_MAX = 4 * 1024 * 1024
/** Members of an event beside its content. */
const EVENT_BYTES = 400

/** The item as feeds get it that ask for the stored bytes, and as the others do. */
export type LiveItem = { readonly withBytes: FeedItem; readonly plain: FeedItem }

const liveItemOf = (item: FeedItem): LiveItem => {
  if (item.kind !== 'event') return { withBytes: item, plain: item }
  const { bytes: _, ...event } = item.event
  return { withBytes: item, plain: { kind: 'event', event } }
}

const sizeOf = ({ withBytes: item }: LiveItem): number => {
  if (item.kind !== 'event') return EVENT_BYTES
  const { bytes } = item.event
  return EVENT_BYTES + (bytes === undefined ? 0 : bytes.data.length + bytes.metadata.length)
}

export class LiveWindow {
  private readonly items: LiveItem[] = []
  private firstNumber = 0
  private bytes = 0
  /** A subscription that begins at the end is live from its first event, whether the store announces it or not. */
  private isLive = true
  /** Every event after this position is in the window, or will come. Unknown before the first event. */
  private completeAfter: bigint | undefined

  push(items: readonly FeedItem[]): void {
    for (const item of items) {
      const added = liveItemOf(item)
      this.items.push(added)
      this.bytes += sizeOf(added)
      if (item.kind === 'event') this.completeAfter ??= item.event.position
      else this.isLive = item.kind === 'caught_up'
    }
    while (this.items.length > ITEMS_MAX || this.bytes > BYTES_MAX) this.removeOlderHalf()
  }

  /** The items from this number on; undefined if the first of them have been removed. */
  from(number: number): readonly LiveItem[] | undefined {
    return number < this.firstNumber ? undefined : this.items.slice(number - this.firstNumber)
  }

  /** Where a feed that has passed this position continues without a gap; undefined if events may be missing. */
  numberAfter(position: bigint): number | undefined {
    const { completeAfter } = this
    if (!this.isLive || completeAfter === undefined || position < completeAfter) return undefined
    let index = this.items.length
    for (let earlier = index - 1; earlier >= 0; earlier -= 1) {
      const item = this.items[earlier]?.plain
      if (item?.kind !== 'event') continue
      if (item.event.position <= position) break
      index = earlier
    }
    return this.firstNumber + index
  }

  /** Half at once, so the array is not moved for every event. */
  private removeOlderHalf(): void {
    const removed = this.items.splice(0, Math.ceil(this.items.length / 2))
    this.firstNumber += removed.length
    for (const item of removed) {
      this.bytes -= sizeOf(item)
      if (item.plain.kind === 'event') this.completeAfter = item.plain.event.position
    }
  }
}
