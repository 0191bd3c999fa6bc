import { LOG_BEGINS } from './initialEvents.ts'
import { type StoredRecord, endOf, memoryOf } from './record.ts'

/** The newest part of the log in memory, for live subscriptions and for reads of the log's end. */

const TAIL_BYTES_MAX = 16 * 1024 * 1024

/** The newest events in memory, which live subscribers read. Slower subscribers read pages from Postgres. */
export type Tail = {
  /** The position of the newest committed event; zero if there is none. */
  head(): bigint
  append(records: readonly StoredRecord[]): void
  /** The position of the next event. */
  end(): bigint
  /** Replaces the tail by the newest event, if there is one. */
  reset(newest: StoredRecord | undefined): void
  /** At most `limit` events after `position`; undefined if they are not in memory. */
  after(position: bigint, limit: number): readonly StoredRecord[] | undefined
  /** At most `limit` events before `position`, the newest first; undefined if they are not all in memory. */
  before(position: bigint, limit: number): readonly StoredRecord[] | undefined
  /** Resolves when the head is after `position`, or the signal aborts. */
  untilAfter(position: bigint, signal: AbortSignal): Promise<void>
}

/** The index of the first event after `position`, by binary search, since every page of every subscriber needs it. */
const firstAfter = (records: readonly StoredRecord[], position: bigint): number => {
  let low = 0
  let high = records.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((records[middle]?.position ?? 0n) > position) high = middle
    else low = middle + 1
  }
  return low
}

const newestBefore = (records: readonly StoredRecord[], position: bigint, limit: number): StoredRecord[] => {
  const index = firstAfter(records, position - 1n)
  return records.slice(Math.max(index - limit, 0), index).toReversed()
}

/** Subscribers that wait for the next event. */
const openWaiting = () => {
  const waiting = new Set<() => void>()
  return {
    wake: (): void => {
      const woken = [...waiting]
      waiting.clear()
      for (const resolve of woken) resolve()
    },
    /** Resolves at the next `wake`, or when the signal aborts. */
    untilWoken: (signal: AbortSignal): Promise<void> =>
      new Promise(resolve => {
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

/** Long because all methods of the tail share its events and their size. */
export const openTail = (): Tail => {
  let records: StoredRecord[] = []
  let bytes = 0
  let head = 0n
  let end = LOG_BEGINS
  /** All events after this position are in memory. */
  let floor = 0n
  const waiting = openWaiting()

  // Half of the events are removed at once, so the array is not moved for every event.
  const trim = (): void => {
    if (bytes <= TAIL_BYTES_MAX) return
    const dropped = records.splice(0, Math.ceil(records.length / 2))
    floor = dropped.at(-1)?.position ?? floor
    for (const record of dropped) bytes -= memoryOf(record)
  }

  return {
    head: () => head,
    end: () => end,
    append: added => {
      for (const record of added) {
        records.push(record)
        bytes += memoryOf(record)
      }
      const newest = records.at(-1)
      if (newest !== undefined) {
        head = newest.position
        end = endOf(newest)
      }
      trim()
      waiting.wake()
    },
    reset: newest => {
      records = newest === undefined ? [] : [newest]
      bytes = records.reduce((sum, record) => sum + memoryOf(record), 0)
      head = newest?.position ?? 0n
      end = newest === undefined ? LOG_BEGINS : endOf(newest)
      floor = newest === undefined ? 0n : newest.position - 1n
      waiting.wake()
    },
    after: (position, limit) => {
      if (position >= head) return []
      if (position < floor) return undefined
      const index = firstAfter(records, position)
      return records.slice(index, index + limit)
    },
    before: (position, limit) => {
      const page = newestBefore(records, position, limit)
      return page.length === limit || floor === 0n ? page : undefined
    },
    untilAfter: async (position, signal) => {
      if (head <= position && !signal.aborted) await waiting.untilWoken(signal)
    },
  }
}
