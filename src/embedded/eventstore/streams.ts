import { openFirstStreams } from './firstStreams.ts'
import { NO_REVISION, isMetastream, originalOf, sizeOf } from './record.ts'
import type { StoredRecord } from './record.ts'
import { METASTREAM_TRUNCATION, NO_TRUNCATION, type Truncation, truncationOf } from './truncation.ts'

const STREAMS_MAX = 50_000
const CACHED_BYTES_MAX = 64 * 1024 * 1024
export const RECENT_EVENTS_MAX = 32
const RECENT_BYTES_MAX = 256 * 1024
/** What an entry costs beside its events: a rough figure, so that many empty entries count too. */
const ENTRY_BYTES = 512

/** What is known of one stream without asking Postgres. */
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

const truncationIn = (metadataJson: string): Truncation =>
  metadataJson === '' ? NO_TRUNCATION : truncationOf(metadataJson)

/** A bounded cache of stream heads and short streams, least recently used first out. Only committed facts enter it. */
export type Streams = {
  get(stream: string): StreamEntry | undefined
  /** Keeps what was read from Postgres unless something newer is known already. */
  offer(stream: string, entry: StreamEntry): StreamEntry
  /** Takes over an event that was committed. */
  committed(record: StoredRecord): void
  /** Remembers the whole end of a stream as it was read from Postgres. */
  remember(stream: string, recent: readonly StoredRecord[]): void
  /** The stream that was the first to have an event with this id, for the newest ids. */
  firstStreamOf(id: string): string | undefined
  clear(): void
}

export const openStreams = (): Streams => {
  const entries = new Map<string, StreamEntry>()
  const firstStreams = openFirstStreams()
  let cachedBytes = 0

  const touch = (stream: string, entry: StreamEntry): void => {
    entries.delete(stream)
    entries.set(stream, entry)
  }
  const evict = (): void => {
    for (const [stream, entry] of entries) {
      if (entries.size <= STREAMS_MAX && cachedBytes <= CACHED_BYTES_MAX) return
      entries.delete(stream)
      cachedBytes -= entry.recentBytes + ENTRY_BYTES
    }
  }
  const keepRecent = (entry: StreamEntry, recent: StoredRecord[]): void => {
    const bytes = recent.reduce((sum, record) => sum + sizeOf(record), 0)
    const kept = bytes <= RECENT_BYTES_MAX
    cachedBytes += (kept ? bytes : 0) - entry.recentBytes
    entry.recent = kept ? recent : []
    entry.recentBytes = kept ? bytes : 0
    evict()
  }
  const grow = (entry: StreamEntry, record: StoredRecord): void => {
    const follows = record.revision === entry.head + 1n
    entry.head = record.revision
    keepRecent(entry, follows ? [...entry.recent, record].slice(-RECENT_EVENTS_MAX) : [record])
  }
  const describe = (record: StoredRecord): void => {
    const described = entries.get(originalOf(record.stream))
    if (described === undefined) return
    described.metaHead = record.revision
    described.metadataJson = record.data.toString('utf8')
    described.truncation = truncationOf(described.metadataJson)
  }

  return {
    get: stream => {
      const entry = entries.get(stream)
      if (entry !== undefined) touch(stream, entry)
      return entry
    },
    offer: (stream, entry) => {
      const known = entries.get(stream)
      if (known !== undefined) return known
      entries.set(stream, entry)
      cachedBytes += entry.recentBytes + ENTRY_BYTES
      evict()
      return entry
    },
    firstStreamOf: id => firstStreams.of(id),
    committed: record => {
      firstStreams.add(record.id, record.stream)
      const entry = entries.get(record.stream)
      if (entry !== undefined && record.revision > entry.head) grow(entry, record)
      if (isMetastream(record.stream)) describe(record)
    },
    remember: (stream, recent) => {
      const entry = entries.get(stream)
      if (entry !== undefined && recent.at(-1)?.revision === entry.head) keepRecent(entry, [...recent])
    },
    clear: () => {
      entries.clear()
      cachedBytes = 0
    },
  }
}
