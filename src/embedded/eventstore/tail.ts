import type { StoredRecord } from './record.ts'
import { sizeOf } from './record.ts'

const TAIL_EVENTS_MAX = 20_000
const TAIL_BYTES_MAX = 32 * 1024 * 1024

/** The newest events in memory, from which live subscribers are served. Whoever falls behind it pages from Postgres. */
export type Tail = {
  /** The position of the newest committed event; zero when there is none. */
  head(): bigint
  append(records: readonly StoredRecord[]): void
  /** Forgets everything and starts over behind `head`. */
  reset(head: bigint): void
  /** The events behind `position`, `limit` at most; undefined when they are no longer, or not yet, in memory. */
  after(position: bigint, limit: number): readonly StoredRecord[] | undefined
  /** Resolves once the head is beyond `position`, or the signal aborts. */
  beyond(position: bigint, signal: AbortSignal): Promise<void>
}

export const openTail = (): Tail => {
  let records: StoredRecord[] = []
  let bytes = 0
  let head = 0n
  const waiting = new Set<() => void>()

  const wake = (): void => {
    const woken = [...waiting]
    waiting.clear()
    for (const resolve of woken) resolve()
  }
  // Half is dropped at once, so that the array is not moved for every event.
  const trim = (): void => {
    if (records.length <= TAIL_EVENTS_MAX && bytes <= TAIL_BYTES_MAX) return
    records = records.slice(Math.ceil(records.length / 2))
    bytes = records.reduce((sum, record) => sum + sizeOf(record), 0)
  }

  return {
    head: () => head,
    append: added => {
      for (const record of added) {
        records.push(record)
        bytes += sizeOf(record)
        head = record.position
      }
      trim()
      wake()
    },
    reset: newHead => {
      records = []
      bytes = 0
      head = newHead
      wake()
    },
    after: (position, limit) => {
      if (position >= head) return []
      const first = records[0]
      if (first === undefined || position + 1n < first.position) return undefined
      const index = Number(position + 1n - first.position)
      return records.slice(index, index + limit)
    },
    beyond: (position, signal) =>
      new Promise(resolve => {
        if (head > position || signal.aborted) return resolve()
        const done = (): void => {
          waiting.delete(done)
          signal.removeEventListener('abort', done)
          resolve()
        }
        waiting.add(done)
        signal.addEventListener('abort', done)
      }),
  }
}
