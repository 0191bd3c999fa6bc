import { type DecidedBatch, decideBatch } from './batchDecision.ts'
import { type StoredRecord, isMetastream, metastreamOf, originalOf } from './record.ts'
import { resendLookupOf } from './resendLookup.ts'
import { SELECT_HEADS } from './statements.ts'
import type { WriterSession } from './storage.ts'
import { type HeadRow, type StreamEntry, type Streams, entryOf, entryOfNew } from './streams.ts'
import type { WriteRequest, Written } from './writeRequest.ts'

/** Commits batches of write requests: decides them in order, and stores all their events in one transaction. */

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

/**
 * Decides the requests in order and commits all their events in one transaction. Never throws.
 *
 * A stream that is not cached is taken for new if all its appends expect that, and the insert verifies it: a lookup before
 * the insert would nearly always find nothing, and double the statements of a commit.
 */
export const commitBatch = async (log: CommittedLog, requests: readonly WriteRequest[]): Promise<Commit> => {
  const assumed = assumedNew(log.streams, requests)
  const commit = assumed.size > 0 ? await commitAssuming(log, requests, assumed) : undefined
  return commit ?? (await commitAssuming(log, requests, new Set())) ?? unavailable(requests, 'none')
}

const unavailable = (requests: readonly WriteRequest[], effect: 'none' | 'unknown'): Commit => ({
  records: [],
  written: requests.map(() => ({ kind: 'unavailable', effect })),
  headsUnsure: true,
})

/** Resolves to undefined, and stores nothing, when it could not be verified that the streams are new. */
const commitAssuming = async (
  log: CommittedLog,
  requests: readonly WriteRequest[],
  assumed: ReadonlySet<string>,
): Promise<Commit | undefined> => {
  const { session, streams, end } = log
  let decided: DecidedBatch
  try {
    const entries = await entriesOf(log, requests, assumed)
    const resends = await resendLookupOf(session, requests, entries)
    decided = decideBatch(end, requests, { entries, resends, firstStreamOf: id => streams.firstStreamOf(id) })
  } catch {
    return unavailable(requests, 'none')
  }
  const { records, written } = decided
  if (records.length === 0) return assumed.size > 0 ? undefined : { records, written }
  try {
    // Nothing is stored if a stream is not new that is assumed to be.
    if ((await session.insert(records, assumed)) === 0) return undefined
  } catch (error) {
    return unavailable(requests, refusedByPostgres(error) ? 'none' : 'unknown')
  }
  for (const name of assumed) streams.offer(name, entryOfNew(name))
  return { records, written }
}

/** The streams that are not cached, and to which these requests only append, each expecting that there is no stream. */
const assumedNew = (streams: Streams, requests: readonly WriteRequest[]): ReadonlySet<string> => {
  const assumed = new Set<string>()
  for (const { stream } of requests) if (streams.get(stream) === undefined) assumed.add(stream)
  for (const request of requests) {
    const { kind, stream, expected } = request
    const isCreation = kind === 'append' && expected === 'no_stream' && !isMetastream(stream)
    if (!isCreation) for (const name of streamsTouched(request)) assumed.delete(name)
  }
  return assumed
}

/** With an SQLSTATE, Postgres has rolled the statement back; not with class 57, which may end the session. */
const refusedByPostgres = (error: unknown): boolean =>
  error instanceof Error && 'severity' in error && 'code' in error && !String(error.code).startsWith('57')

/** The entries of all streams but those that are assumed to be new. */
const entriesOf = async (
  log: CommittedLog,
  requests: readonly WriteRequest[],
  assumed: ReadonlySet<string>,
): Promise<Map<string, StreamEntry>> => {
  const entries = new Map<string, StreamEntry>()
  const missing = new Set<string>()
  for (const name of requests.flatMap(streamsTouched)) {
    if (assumed.has(name)) continue
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
