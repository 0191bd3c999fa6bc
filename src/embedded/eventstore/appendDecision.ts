import { type Expected, NO_REVISION, type StoredRecord, TOMBSTONE_REVISION } from './record.ts'

/** The members of a stored event that the decision needs. */
export type Stored = Pick<StoredRecord, 'id' | 'revision' | 'position' | 'createdTicks'>

export type StreamState = {
  /** The newest revision; `NO_REVISION` without events, `TOMBSTONE_REVISION` after a tombstone. */
  readonly head: bigint
  readonly softDeleted: boolean
  readonly hasMetadata: boolean
  /** Whether a reader can see the event: a recognized resend gets the position of a visible one. */
  readonly isVisible: (event: Stored) => boolean
  readonly atRevision: (revision: bigint) => Stored | undefined
  /** The event with this id, if this stream was the first with it. Limited to recent events, as in the real server. */
  readonly byId: (id: string) => Stored | undefined
}

export type Decision =
  | { readonly kind: 'append'; readonly first: bigint }
  | { readonly kind: 'already_there'; readonly revision: bigint; readonly position: bigint | undefined }
  | { readonly kind: 'wrong_version'; readonly actual: bigint }
  | { readonly kind: 'deleted' }

/** As EventStoreDB does: ids alone tell a resend from a conflict. A partial resend is refused as a wrong revision. */
export const decideAppend = (expected: Expected, ids: readonly string[], stream: StreamState): Decision => {
  if (stream.head === TOMBSTONE_REVISION) return { kind: 'deleted' }
  if (expected === 'any' || expected === 'stream_exists') return decideLoosely(expected, ids, stream)
  const revision = expected === 'no_stream' ? NO_REVISION : expected
  if (revision > stream.head) return { kind: 'wrong_version', actual: stream.head }
  if (revision === stream.head) return { kind: 'append', first: stream.head + 1n }
  return decideStale(revision, ids, stream)
}

const decideStale = (expected: bigint, ids: readonly string[], stream: StreamState): Decision => {
  const copies = ids.map((id, index) => {
    const stored = stream.atRevision(expected + BigInt(index) + 1n)
    return stored?.id === id ? stored : undefined
  })
  const last = copies.at(-1)
  if (last !== undefined && copies.every(copy => copy !== undefined)) return alreadyThere(last, stream)
  const revived = expected === NO_REVISION && stream.softDeleted && copies[0] === undefined
  return revived ? { kind: 'append', first: stream.head + 1n } : { kind: 'wrong_version', actual: stream.head }
}

const alreadyThere = (last: Stored, stream: StreamState): Decision => ({
  kind: 'already_there',
  revision: last.revision,
  position: stream.isVisible(last) ? last.position : undefined,
})

/** A stream without events and metadata cannot be deleted, with any expected revision; it can be tombstoned. */
export const decideDelete = (expected: Expected, id: string, stream: StreamState): Decision =>
  stream.head === NO_REVISION && !stream.hasMetadata
    ? { kind: 'wrong_version', actual: NO_REVISION }
    : decideAppend(expected, [id], stream)

const decideLoosely = (expected: 'any' | 'stream_exists', ids: readonly string[], stream: StreamState): Decision => {
  if (expected === 'stream_exists' && stream.softDeleted) return { kind: 'deleted' }
  const missing = stream.head === NO_REVISION && !stream.hasMetadata
  if (expected === 'stream_exists' && missing) return { kind: 'wrong_version', actual: stream.head }
  const copies = ids.map(stream.byId)
  if (copies[0] === undefined) return { kind: 'append', first: stream.head + 1n }
  const last = copies.at(-1)
  if (last !== undefined && copies.every(copy => copy !== undefined)) return alreadyThere(last, stream)
  return { kind: 'wrong_version', actual: stream.head }
}
