import { LRUCache } from 'lru-cache'
import type { Appended } from '../../ports.ts'

/**
 * The ends of streams, by which a read of a stream that has not grown since its last read needs no call of its own: reads
 * that begin together share one read of the log's newest position. While the log does not grow, they find that no stream
 * has grown.
 *
 * The store shows an event in its stream before it shows it at the head of the log. A read of a stream that begins after a
 * position was seen therefore finds every event of the stream up to that position.
 */

const STREAMS_MAX = 20_000

/** As of the position `asOf` of the log, the stream has no event of the revision `next` or a higher one. */
type End = { readonly next: bigint; readonly asOf: bigint }

export class StreamEnds {
  private readonly ends = new LRUCache<string, End>({ max: STREAMS_MAX })
  private newestSeen = 0n
  private nextHead: Promise<bigint> | undefined

  /** The newest position that was seen; a read that begins now finds every event up to it. */
  newest(): bigint {
    return this.newestSeen
  }

  /** Remembers an event, and that it is the last one of its stream. */
  appended(
    stream: string,
    { revision, position }: Pick<Extract<Appended, { ok: true }>, 'revision' | 'position'>,
  ): void {
    this.readToEnd(stream, revision + 1n, position)
  }

  /** Remembers the end that a read has reached which began when `asOf` was seen. */
  readToEnd(stream: string, next: bigint, asOf: bigint): void {
    if (asOf > this.newestSeen) this.newestSeen = asOf
    const previous = this.ends.peek(stream)
    // Reads and appends may end in another order than they began.
    if (previous === undefined || previous.asOf <= asOf) this.ends.set(stream, { next, asOf })
  }

  /**
   * Whether the stream certainly ends before this revision. `readHead`, which reads the position of the log's newest
   * event, is not called if the log is known to have grown since the stream was read.
   */
  async endsBefore(stream: string, from: bigint, readHead: () => Promise<bigint>): Promise<boolean> {
    if (!this.isBefore(stream, from, this.newestSeen)) return false
    const seen = this.newestSeen
    const head = await this.sharedHead(readHead)
    // An older head than before is that of another log, such as a restored one.
    if (head < seen) this.forget()
    if (head > this.newestSeen) this.newestSeen = head
    return this.isBefore(stream, from, head)
  }

  private isBefore(stream: string, from: bigint, position: bigint): boolean {
    const end = this.ends.get(stream)
    return end !== undefined && end.next <= from && end.asOf >= position
  }

  /** The reads of one turn of the event loop share a read of the head, which begins after all of them. */
  private sharedHead(readHead: () => Promise<bigint>): Promise<bigint> {
    this.nextHead ??= new Promise<void>(resolve => setImmediate(resolve)).then(() => {
      this.nextHead = undefined
      return readHead()
    })
    return this.nextHead
  }

  private forget(): void {
    this.ends.clear()
    this.newestSeen = 0n
  }
}
