import { randomUUID } from 'node:crypto'
import { type Decision, type Stored, type StreamState, decideAppend, decideDelete } from './appendDecision.ts'
import {
  NO_REVISION,
  type ProposedEvent,
  type StoredRecord,
  TOMBSTONE_REVISION,
  endOf,
  isMetastream,
  metastreamOf,
  originalOf,
  ticksOf,
} from './record.ts'
import type { ResendLookup } from './resendLookup.ts'
import type { StreamEntry } from './streams.ts'
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

/** The events to be stored, and one response for each request, in order. */
export type DecidedBatch = { readonly records: StoredRecord[]; readonly written: Written[] }
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

/** In order. Long because its steps share the drafts of the streams and the next position. */
export const decideBatch = (end: bigint, requests: readonly WriteRequest[], context: Context): DecidedBatch => {
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
    const record = { ...event, position, stream, revision, createdTicks }
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
    if (request.deadlineMs <= Date.now()) return { kind: 'timeout' }
    if (refusesMetadata(request.stream, draftOf)) return { kind: 'deleted' }
    const decision = decide(request, stateOf(request.stream, draftOf, { ...context, firstStreamOf }))
    return decision.kind === 'append' ? execute(request, decision.first) : resultOf(decision)
  })
  return { records, written }
}

/** Of a tombstoned stream it can be set only if it was before: the real server does not look at the stream then. */
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
  const addedHere = (matches: (event: Stored) => boolean): Stored | undefined => draft.added.find(matches)
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
