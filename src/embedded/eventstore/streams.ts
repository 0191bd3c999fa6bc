import { LRUCache } from 'lru-cache'
import { NO_REVISION, isMetastream, memoryOf, originalOf, type StoredRecord } from './record.ts'
import { METASTREAM_TRUNCATION, NO_TRUNCATION, type Truncation, truncationOf } from './truncation.ts'

const STREAMS_MAX = 40_000
const IDS_MAX = 50_000
const CACHED_BYTES_MAX = 16 * 1024 * 1024
export const RECENT_EVENTS_MAX = 32
const RECENT_BYTES_MAX = 256 * 1024
/** The memory that an entry takes without its events: measured, and rounded up. */
const ENTRY_BYTES = 600

export type StreamEntry = {
  head: bigint
  metaHead: bigint
  /** The content of its newest metadata event. */
  metadataJson: string
  truncation: Truncation
  /** The newest events up to the head, without a gap; possibly none. */
  recent: StoredRecord[]
  recentBytes: number
}

export type HeadRow = {
  readonly stream: string
  readonly head: bigint | null
  readonly meta_head: bigint | null
  readonly meta: Buffer | null
}

export const entryOf = (row: HeadRow): StreamEntry => {
  const metadataJson = row.meta?.toString('utf8') ?? ''
  return {
    head: row.head ?? NO_REVISION,
    metaHead: row.meta_head ?? NO_REVISION,
    metadataJson,
    truncation: isMetastream(row.stream) ? METASTREAM_TRUNCATION : truncationIn(metadataJson),
    recent: [],
    recentBytes: 0,
  }
}

export const entryOfNew = (stream: string): StreamEntry => entryOf({ stream, head: null, meta_head: null, meta: null })

const truncationIn = (metadataJson: string): Truncation =>
  metadataJson === '' ? NO_TRUNCATION : truncationOf(metadataJson)

/** A bounded LRU cache of stream heads and short streams. It contains committed state only. */
export type Streams = {
  get(stream: string): StreamEntry | undefined
  /** Stores an entry that was read from Postgres unless a newer one is cached, and returns the cached one. */
  offer(stream: string, entry: StreamEntry): StreamEntry
  /** Adds a committed event. */
  committed(record: StoredRecord): void
  /** Stores the end of a stream as it was read from Postgres. */
  cacheRecent(stream: string, recent: readonly StoredRecord[]): void
  /** The first stream with this event id, for the newest ids. */
  firstStreamOf(id: string): string | undefined
  clear(): void
}

const sizeOfEntry = ({ recentBytes }: StreamEntry): number => recentBytes + ENTRY_BYTES

/** Replaces the recent events, or drops them beyond RECENT_BYTES_MAX. */
const keepRecent = (entry: StreamEntry, recent: StoredRecord[]): void => {
  const bytes = recent.reduce((sum, record) => sum + memoryOf(record), 0)
  const isKept = bytes <= RECENT_BYTES_MAX
  entry.recent = isKept ? recent : []
  entry.recentBytes = isKept ? bytes : 0
}

const addNewest = (entry: StreamEntry, record: StoredRecord): void => {
  const follows = record.revision === entry.head + 1n
  entry.head = record.revision
  keepRecent(entry, follows ? [...entry.recent, record].slice(-RECENT_EVENTS_MAX) : [record])
}

const replaceMetadata = (entry: StreamEntry, { revision, data }: StoredRecord): void => {
  entry.metaHead = revision
  entry.metadataJson = data.toString('utf8')
  entry.truncation = truncationOf(entry.metadataJson)
}

/** Long because it lists the methods of the cache. */
export const openStreams = (): Streams => {
  const entries = new LRUCache<string, StreamEntry>({
    max: STREAMS_MAX,
    maxSize: CACHED_BYTES_MAX,
    sizeCalculation: sizeOfEntry,
  })
  /** The real server recognizes resends by one table for all streams, which keeps the first event with an id. */
  const firstStreams = new LRUCache<string, string>({ max: IDS_MAX })

  /** The cache does not measure the same object again, so a changed entry is removed first. */
  const resize = (stream: string, entry: StreamEntry): void => {
    entries.delete(stream)
    entries.set(stream, entry)
  }

  return {
    get: stream => entries.get(stream),
    offer: (stream, entry) => {
      const existing = entries.peek(stream)
      if (existing !== undefined) return existing
      entries.set(stream, entry)
      return entry
    },
    // Without an effect on the order of eviction, which is that of the log.
    firstStreamOf: id => firstStreams.peek(id),
    committed: record => {
      const { id, stream, revision } = record
      if (!firstStreams.has(id)) firstStreams.set(id, stream)
      const entry = entries.peek(stream)
      if (entry !== undefined && revision > entry.head) {
        addNewest(entry, record)
        resize(stream, entry)
      }
      const original = isMetastream(stream) ? entries.peek(originalOf(stream)) : undefined
      if (original !== undefined) replaceMetadata(original, record)
    },
    cacheRecent: (stream, recent) => {
      const entry = entries.peek(stream)
      if (entry === undefined || recent.at(-1)?.revision !== entry.head) return
      keepRecent(entry, [...recent])
      resize(stream, entry)
    },
    clear: () => entries.clear(),
  }
}
