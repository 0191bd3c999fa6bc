import { randomUUID } from 'node:crypto'
import { type Decision, type Known, type StreamState, decideAppend, decideDelete } from './appendDecision.ts'
import {
  NO_REVISION,
  type ProposedEvent,
  type StoredRecord,
  TOMBSTONE_REVISION,
  endOf,
  isMetastream,
  metastreamOf,
  noEncodings,
  originalOf,
  ticksOf,
} from './record.ts'
import { type ResendLookup, resendLookupOf } from './resendLookup.ts'
import { INSERT, SELECT_HEADS } from './statements.ts'
import type { WriterSession } from './storage.ts'
import { type HeadRow, type StreamEntry, type Streams, entryOf } from './streams.ts'
import {
  METASTREAM_TRUNCATION,
  type Truncation,
  isSoftDeleted,
  isVisible,
  softDeletedMetadata,
  restoredMetadata,
  truncationOf,
} from './truncation.ts'
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

/** Decides the requests in order and commits all their events in one transaction. Never throws. */
export const commitBatch = async (log: CommittedLog, requests: readonly WriteRequest[]): Promise<Commit> => {
  let decided: DecidedBatch
  try {
    const entries = await entriesOf(log, requests)
    const resends = await resendLookupOf(log.session, requests, entries)
    decided = decideBatch(log.end, requests, { entries, resends, firstStreamOf: id => log.streams.firstStreamOf(id) })
  } catch {
    return { records: [], written: requests.map(() => ({ kind: 'unavailable', effect: 'none' })), headsUnsure: true }
  }
  try {
    if (decided.records.length > 0) await insert(log, decided.records)
    return { records: decided.records, written: decided.written }
  } catch (error) {
    const effect = refusedByPostgres(error) ? 'none' : 'unknown'
    return { records: [], written: requests.map(() => ({ kind: 'unavailable', effect })), headsUnsure: true }
  }
}

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

type DecidedBatch = { readonly records: StoredRecord[]; readonly written: Written[] }
type Context = {
  readonly entries: ReadonlyMap<string, StreamEntry>
  readonly resends: ResendLookup
  readonly firstStreamOf: (id: string) => string | undefined
}

/** The state of a stream after the earlier requests of the batch. `added`: its events of this batch. */
type Draft = {
  head: bigint
  metaHead: bigint
  metadataJson: string
  softDeleted: boolean
  readonly added: StoredRecord[]
}

/**
 * Decides all requests of a batch in order.
 *
 * Long because its steps share the drafts of the streams and the next position.
 */
const decideBatch = (end: bigint, requests: readonly WriteRequest[], context: Context): DecidedBatch => {
  const records: StoredRecord[] = []
  let position = end
  const firstHere = new Map<string, string>()
  const firstStreamOf = (id: string) => context.firstStreamOf(id) ?? firstHere.get(id)
  const drafts = new Map<string, Draft>()
  const createdTicks = ticksOf(Date.now())
  const draftOf = (stream: string): Draft => {
    const draft = drafts.get(stream) ?? openDraft(context.entries.get(stream))
    drafts.set(stream, draft)
    return draft
  }
  const add = (stream: string, revision: bigint, event: ProposedEvent): StoredRecord => {
    const record = { ...event, position, stream, revision, createdTicks, encodings: noEncodings() }
    position = endOf(record)
    const draft = draftOf(stream)
    draft.head = revision
    draft.added.push(record)
    records.push(record)
    if (!firstHere.has(record.id)) firstHere.set(record.id, stream)
    if (isMetastream(stream)) applyMetadata(draftOf(originalOf(stream)), record)
    return record
  }
  const setMetadata = (stream: string, metadataJson: string): StoredRecord =>
    add(metastreamOf(stream), draftOf(stream).metaHead + 1n, systemEvent('$metadata', metadataJson))
  const restore = (stream: string, { metadataJson }: Draft, from: bigint): void => {
    const json = restoredMetadata(metadataJson, from)
    if (json !== undefined) setMetadata(stream, json)
  }
  const execute = (request: WriteRequest, first: bigint): Written => {
    const { kind, stream, events } = request
    const draft = draftOf(stream)
    if (kind === 'delete') return writtenOf(setMetadata(stream, softDeletedMetadata()))
    if (kind === 'tombstone') return writtenOf(add(stream, TOMBSTONE_REVISION, systemEvent('$streamDeleted', '')))
    const original = isMetastream(stream) ? draftOf(originalOf(stream)) : undefined
    // A write to a soft-deleted stream, or to its metadata, restores the stream. Tested before the events are added, because
    // new metadata changes `original`.
    const isRestored = original?.softDeleted === true && original.head !== TOMBSTONE_REVISION
    const added = events.map((event, index) => add(stream, first + BigInt(index), event))
    if (draft.softDeleted && added.length > 0) restore(stream, draft, first)
    if (original !== undefined && isRestored) restore(originalOf(stream), original, original.head + 1n)
    const last = added.at(-1)
    return last === undefined ? { kind: 'written', revision: draft.head, position: undefined } : writtenOf(last)
  }
  const written = requests.map((request): Written => {
    if (request.deadlineMs < Date.now()) return { kind: 'timeout' }
    if (refusesMetadata(request.stream, draftOf)) return { kind: 'deleted' }
    const decision = decide(request, stateOf(request.stream, draftOf, { ...context, firstStreamOf }))
    return decision.kind === 'append' ? execute(request, decision.first) : resultOf(decision)
  })
  return { records, written }
}

/**
 * The metadata of a tombstoned stream can be set only if it was set before: the real server knows the revision of that
 * metadata then, and does not look at the stream.
 */
const refusesMetadata = (stream: string, draftOf: (stream: string) => Draft): boolean =>
  isMetastream(stream) &&
  draftOf(originalOf(stream)).head === TOMBSTONE_REVISION &&
  draftOf(stream).head === NO_REVISION

const decide = ({ kind, expected, events }: WriteRequest, state: StreamState): Decision => {
  if (kind === 'delete') return decideDelete(expected, randomUUID(), state)
  return decideAppend(expected, kind === 'append' ? events.map(event => event.id) : [randomUUID()], state)
}

const applyMetadata = (draft: Draft, metadata: StoredRecord): void => {
  draft.metaHead = metadata.revision
  draft.metadataJson = metadata.data.toString('utf8')
  draft.softDeleted = isSoftDeleted(truncationOf(draft.metadataJson))
}

const openDraft = (entry: StreamEntry | undefined): Draft => ({
  head: entry?.head ?? NO_REVISION,
  metaHead: entry?.metaHead ?? NO_REVISION,
  metadataJson: entry?.metadataJson ?? '',
  softDeleted: entry !== undefined && isSoftDeleted(entry.truncation),
  added: [],
})

const stateOf = (
  stream: string,
  draftOf: (stream: string) => Draft,
  { resends, firstStreamOf }: Pick<Context, 'resends' | 'firstStreamOf'>,
): StreamState => {
  const draft = draftOf(stream)
  const addedHere = (matches: (event: Known) => boolean): Known | undefined => draft.added.find(matches)
  return {
    head: draft.head,
    softDeleted: draft.softDeleted,
    hasMetadata: draft.metaHead !== NO_REVISION,
    isVisible: event => isVisible({ head: draft.head, truncation: truncationFor(stream, draft) }, event),
    atRevision: revision => addedHere(event => event.revision === revision) ?? resends.atRevision(stream, revision),
    byId: id =>
      (firstStreamOf(id) ?? stream) === stream
        ? (resends.byId(stream, id) ?? addedHere(event => event.id === id))
        : undefined,
  }
}

const truncationFor = (stream: string, { metadataJson }: Draft): Truncation =>
  isMetastream(stream) ? METASTREAM_TRUNCATION : truncationOf(metadataJson)

const writtenOf = ({ revision, position }: StoredRecord): Written => ({ kind: 'written', revision, position })

const resultOf = (decision: Exclude<Decision, { kind: 'append' }>): Written =>
  decision.kind === 'already_there'
    ? { kind: 'written', revision: decision.revision, position: decision.position }
    : decision

const systemEvent = (type: string, json: string): ProposedEvent => ({
  id: randomUUID(),
  type,
  isJson: true,
  data: Buffer.from(json),
  metadata: Buffer.alloc(0),
})

const insert = async ({ session }: CommittedLog, records: readonly StoredRecord[]): Promise<void> => {
  const dataAt: number[] = []
  let at = 1
  for (const { data, metadata } of records) {
    dataAt.push(at)
    at += data.length + metadata.length
  }
  const column = <K extends keyof StoredRecord>(name: K): StoredRecord[K][] => records.map(record => record[name])
  await session.query('insert', INSERT, [
    column('position'),
    column('stream'),
    column('revision'),
    column('id'),
    column('type'),
    column('isJson'),
    dataAt,
    Buffer.concat(records.flatMap(({ data, metadata }) => [data, metadata])),
    records[0]?.createdTicks,
    records.map(({ data }) => data.length),
    records.map(({ metadata }) => metadata.length),
  ])
}
