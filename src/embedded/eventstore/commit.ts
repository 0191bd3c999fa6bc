import { type DecidedBatch, decideBatch } from './batchDecision.ts'
import { type StoredRecord, isMetastream, metastreamOf, originalOf } from './record.ts'
import { resendLookupOf } from './resendLookup.ts'
import { SELECT_HEADS } from './statements.ts'
import type { WriterSession } from './storage.ts'
import { type HeadRow, type StreamEntry, type Streams, entryOf } from './streams.ts'
import type { WriteRequest, Written } from './writeRequest.ts'

/** The committed events, and one response for each request, in order. */
export type Commit = {
  readonly records: readonly StoredRecord[]
  readonly written: readonly Written[]
  /** The cached stream heads may be wrong now. */
  readonly headsUnsure?: true
}

export type CommittedLog = {
  readonly session: WriterSession
  readonly streams: Streams
  readonly end: bigint
}

/** Decides the requests in order and commits all their events in one transaction. Never throws. */
export const commitBatch = async (log: CommittedLog, requests: readonly WriteRequest[]): Promise<Commit> => {
  const { session, streams, end } = log
  let decided: DecidedBatch
  try {
    const entries = await entriesOf(log, requests)
    const resends = await resendLookupOf(session, requests, entries)
    decided = decideBatch(end, requests, { entries, resends, firstStreamOf: id => streams.firstStreamOf(id) })
  } catch {
    return unavailable(requests, 'none')
  }
  try {
    if (decided.records.length > 0) await session.insert(decided.records)
  } catch (error) {
    return unavailable(requests, refusedByPostgres(error) ? 'none' : 'unknown')
  }
  return decided
}

export const unavailable = (requests: readonly WriteRequest[], effect: 'none' | 'unknown'): Commit => ({
  records: [],
  written: requests.map(() => ({ kind: 'unavailable', effect })),
  headsUnsure: true,
})

/** With an SQLSTATE, Postgres has rolled the statement back; not with class 57, which may end the session. */
const refusedByPostgres = (error: unknown): boolean =>
  error instanceof Error && 'severity' in error && 'code' in error && !String(error.code).startsWith('57')

const entriesOf = async (log: CommittedLog, requests: readonly WriteRequest[]): Promise<Map<string, StreamEntry>> => {
  const entries = new Map<string, StreamEntry>()
  const missing = new Set<string>()
  for (const name of requests.flatMap(streamsTouched)) {
    const entry = log.streams.get(name)
    if (entry === undefined) missing.add(name)
    else entries.set(name, entry)
  }
  if (missing.size === 0) return entries
  for (const row of await log.session.query<HeadRow>('heads', SELECT_HEADS, [[...missing]]))
    entries.set(row.stream, log.streams.offer(row.stream, entryOf(row)))
  return entries
}

/** A delete writes to the metadata stream; a write to a metadata stream is refused if the stream itself is deleted. */
const streamsTouched = ({ kind, stream }: WriteRequest): string[] => {
  if (isMetastream(stream)) return [stream, originalOf(stream)]
  return kind === 'delete' ? [stream, metastreamOf(stream)] : [stream]
}
