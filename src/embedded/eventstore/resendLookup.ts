import type { Stored } from './appendDecision.ts'
import { NO_REVISION } from './record.ts'
import type { EventRow } from './rows.ts'
import { SELECT_BY_ID, SELECT_BY_REVISION } from './statements.ts'
import type { WriterSession } from './storage.ts'
import type { StreamEntry } from './streams.ts'
import type { WriteRequest } from './writeRequest.ts'

/** The number of events within which an append without an exact expected revision is recognized as a resend. */
const RESEND_EVENTS_MAX = 1000n

/** The committed events whose ids the decisions of one batch may have to compare. */
export type ResendLookup = {
  atRevision(stream: string, revision: bigint): Stored | undefined
  byId(stream: string, id: string): Stored | undefined
}

type StoredRow = Pick<EventRow, 'stream' | 'revision' | 'event_id' | 'position' | 'created'>
type Entries = ReadonlyMap<string, StreamEntry>

/** Reads them with at most two queries, and with none if every request expects the current revision. */
export const resendLookupOf = async (
  session: WriterSession,
  requests: readonly WriteRequest[],
  entries: Entries,
): Promise<ResendLookup> => {
  const rows = [...(await byRevision(session, requests, entries)), ...(await byId(session, requests, entries))]
  const byKey = new Map<string, Stored>()
  // If an id is in a stream twice, the first event with it counts.
  rows.sort((a, b) => Number(a.revision - b.revision))
  for (const { stream, revision, event_id: id, position, created: createdTicks } of rows) {
    byKey.set(`${revision} ${stream}`, { id, revision, position, createdTicks })
    const key = `${id} ${stream}`
    if (!byKey.has(key)) byKey.set(key, { id, revision, position, createdTicks })
  }
  return {
    atRevision: (stream, revision) => byKey.get(`${revision} ${stream}`),
    byId: (stream, id) => byKey.get(`${id} ${stream}`),
  }
}

const headOf = (entries: Entries, stream: string): bigint => entries.get(stream)?.head ?? NO_REVISION

const byRevision = async (session: WriterSession, requests: readonly WriteRequest[], entries: Entries) => {
  const keys = requests.flatMap(({ stream, expected, events }) => {
    if (expected === 'any' || expected === 'stream_exists') return []
    const first = expected === 'no_stream' ? 0n : expected + 1n
    const revisions = events.map((_, index) => first + BigInt(index))
    return revisions.filter(revision => revision <= headOf(entries, stream)).map(revision => ({ stream, revision }))
  })
  if (keys.length === 0) return []
  const columns = [keys.map(({ stream }) => stream), keys.map(({ revision }) => revision)]
  return session.query<StoredRow>('by_revision', SELECT_BY_REVISION, columns)
}

const byId = async (session: WriterSession, requests: readonly WriteRequest[], entries: Entries) => {
  const keys = requests.flatMap(({ kind, stream, expected, events }) => {
    const head = headOf(entries, stream)
    const exact = expected !== 'any' && expected !== 'stream_exists'
    if (exact || kind !== 'append' || head === NO_REVISION) return []
    return events.map(({ id }) => ({ stream, id, since: head - RESEND_EVENTS_MAX }))
  })
  if (keys.length === 0) return []
  const columns = [keys.map(({ stream }) => stream), keys.map(({ id }) => id), keys.map(({ since }) => since)]
  return session.query<StoredRow>('by_id', SELECT_BY_ID, columns)
}
