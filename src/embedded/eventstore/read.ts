import type { Filter } from './filter.ts'
import { NO_REVISION, type StoredRecord, TOMBSTONE_REVISION, sizeOf } from './record.ts'
import { SELECT_HEADS } from './statements.ts'
import type { Direction, Reader } from './storage.ts'
import { type HeadRow, RECENT_EVENTS_MAX, type StreamEntry, type Streams, entryOf, entryOfNew } from './streams.ts'
import type { Tail } from './tail.ts'
import { firstVisible, isExpired, isSoftDeleted, isVisible } from './truncation.ts'

const FIRST_PAGE_EVENTS = RECENT_EVENTS_MAX
/** Each reader has two pages in memory; larger ones cost more memory and no less CPU time. */
const PAGE_EVENTS_MAX = 500
const PAGE_BYTES_AIM = 1 * 1024 * 1024

export type Log = { readonly reader: Reader; readonly streams: Streams; readonly tail: Tail }

export type StreamRead = {
  readonly stream: string
  readonly direction: Direction
  /** Inclusive; `end` is the newest event. */
  readonly from: bigint | 'start' | 'end'
  readonly count: number
}

export type Existence = 'found' | 'not_found' | 'deleted'

/** The entry of the stream, from memory if possible. */
export const entryFor = async (logger: Log, stream: string): Promise<StreamEntry> => {
  const existing = logger.streams.get(stream)
  if (existing !== undefined) return existing
  const asOf = logger.tail.head()
  const [row] = await logger.reader.query<HeadRow>('heads', SELECT_HEADS, [[stream]])
  const entry = row === undefined ? entryOfNew(stream) : entryOf(row)
  // If an event was committed meanwhile, the entry may be stale: then it serves this read only, and is not cached.
  return logger.tail.head() === asOf ? logger.streams.offer(stream, entry) : entry
}

export const existence = (entry: StreamEntry): Existence => {
  if (entry.head === TOMBSTONE_REVISION) return 'deleted'
  return entry.head === NO_REVISION || isSoftDeleted(entry.truncation) ? 'not_found' : 'found'
}

/** One event of a stream that a reader of it may see; revision -1 is the newest. */
export const readOne = async (logger: Log, stream: string, revision: bigint): Promise<StoredRecord | undefined> => {
  const entry = await entryFor(logger, stream)
  if (existence(entry) !== 'found') return undefined
  const from = revision === NO_REVISION ? entry.head : revision
  if (from < 0n || from > entry.head) return undefined
  const recent = entry.recent.find(record => record.revision === from)
  const record =
    recent ?? (await logger.reader.streamPage({ stream, direction: 'forwards', from, to: from, limit: 1 }))[0]
  return record !== undefined && isVisible(entry, record) ? record : undefined
}

/** The visible events of an existing stream, by pages. */
export async function* readStream(logger: Log, entry: StreamEntry, read: StreamRead): AsyncGenerator<StoredRecord[]> {
  const { head } = entry
  const first = firstVisible(entry.truncation, head)
  const from = startOf(read, first, head)
  if (from === undefined || read.count === 0) return
  const to = read.direction === 'forwards' ? head : first
  const isVisible = (record: StoredRecord): boolean => !isExpired(record, entry.truncation, Date.now())
  let remaining = read.count
  for await (const page of pagesOf(logger, { ...read, entry, from, to })) {
    const visible = page.filter(isVisible).slice(0, remaining)
    remaining -= visible.length
    yield visible
    if (remaining <= 0) return
  }
}

/** The first revision to read, or undefined if there is nothing to read. */
const startOf = ({ direction, from }: StreamRead, first: bigint, head: bigint): bigint | undefined => {
  if (direction === 'forwards') {
    const bound = from === 'start' ? 0n : from === 'end' ? head + 1n : from
    const start = bound > first ? bound : first
    return start > head ? undefined : start
  }
  const bound = from === 'start' ? 0n : from === 'end' ? head : from
  const start = bound < head ? bound : head
  return start < first ? undefined : start
}

type Range = StreamRead & { readonly entry: StreamEntry; readonly from: bigint; readonly to: bigint }

async function* pagesOf(logger: Log, range: Range): AsyncGenerator<StoredRecord[]> {
  const remembered = fromMemory(range)
  if (remembered !== undefined) return yield remembered
  const { stream, direction, to, entry, count } = range
  let { from } = range
  let limit = Math.min(FIRST_PAGE_EVENTS, count)
  const next = (): Promise<StoredRecord[]> => logger.reader.streamPage({ stream, direction, from, to, limit })
  let ahead: Promise<StoredRecord[]> | undefined
  for (let read = 0; direction === 'forwards' ? from <= to : from >= to; ) {
    const page = await (ahead ?? next())
    const last = page.at(-1)
    if (last === undefined) return
    if (direction === 'forwards' && from === range.from && last.revision === entry.head)
      logger.streams.cacheRecent(stream, page)
    read += page.length
    from = direction === 'forwards' ? last.revision + 1n : last.revision - 1n
    limit = nextLimit(page)
    // The next page is read while this one is sent. If the reader leaves, its rejection is ignored.
    ahead = read < count && last.revision !== to ? next() : undefined
    ahead?.catch(() => undefined)
    yield page
  }
}

/** The requested events, if the cached end of the stream covers them. */
const fromMemory = ({ entry, direction, from, to }: Range): StoredRecord[] | undefined => {
  const oldest = entry.recent[0]
  const low = direction === 'forwards' ? from : to
  if (oldest === undefined || low < oldest.revision) return undefined
  const high = direction === 'forwards' ? to : from
  const records = entry.recent.filter(({ revision }) => revision >= low && revision <= high)
  return direction === 'forwards' ? records : records.toReversed()
}

/** Pages grow while the events are small. */
export const nextLimit = (page: readonly StoredRecord[]): number => {
  const bytes = page.reduce((sum, record) => sum + sizeOf(record), 0)
  const byBytes = Math.floor(PAGE_BYTES_AIM / Math.max(bytes / page.length, 1))
  return Math.min(Math.max(byBytes, 1), PAGE_EVENTS_MAX, page.length * 8)
}

export type AllRead = {
  readonly direction: Direction
  /** Forwards inclusive, backwards exclusive, as in the real server. */
  readonly from: bigint | 'start' | 'end'
  readonly count: number
  readonly filter?: Filter
}

/** The events of all streams, by pages, up to the end of the log. */
export async function* readAll(
  logger: Log,
  { direction, from, count, filter }: AllRead,
): AsyncGenerator<StoredRecord[]> {
  let remaining = count
  const limit = filter === undefined ? Math.min(FIRST_PAGE_EVENTS, count) : FIRST_PAGE_EVENTS
  for await (const page of allPages(logger, direction, boundOf(direction, from, logger.tail.head()), limit)) {
    const matching = (filter === undefined ? page : page.filter(filter)).slice(0, remaining)
    remaining -= matching.length
    yield matching
    if (remaining <= 0) return
  }
}

/** The real server reads its log at this byte, so a computed position may be in the middle of an event. */
export const mayBegin = async (logger: Log, position: bigint): Promise<boolean> => {
  if (position === 0n || position >= logger.tail.end()) return true
  const [event] = await allPage(logger, 'forwards', position - 1n, 1)
  return event?.position === position
}

/** The exclusive bound of a page: after it (forwards) or before it (backwards). */
const boundOf = (direction: Direction, from: AllRead['from'], head: bigint): bigint => {
  if (direction === 'forwards') return from === 'start' ? 0n : from === 'end' ? head : from - 1n
  return from === 'start' ? 0n : from === 'end' || from > head ? head + 1n : from
}

async function* allPages(
  logger: Log,
  direction: Direction,
  bound: bigint,
  firstLimit: number,
): AsyncGenerator<StoredRecord[]> {
  let limit = firstLimit
  for (let position = bound; ; ) {
    const page = await allPage(logger, direction, position, limit)
    const last = page.at(-1)
    if (last === undefined) return
    yield [...page]
    position = last.position
    limit = nextLimit(page)
  }
}

/** One page of the log, from the tail in memory if it covers the page, else from Postgres. */
export const allPage = async (
  logger: Log,
  direction: Direction,
  position: bigint,
  limit: number,
): Promise<readonly StoredRecord[]> => {
  const { tail } = logger
  const remembered = direction === 'forwards' ? tail.after(position, limit) : tail.before(position, limit)
  return remembered ?? logger.reader.allPage(direction, position, limit)
}
