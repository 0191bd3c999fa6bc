import { Buffer } from 'node:buffer'
import shared from '@eventstore/db-client/generated/shared_pb.js'
import type { StreamIdentifier, UUID } from '@eventstore/db-client/generated/shared_pb.js'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import type { BatchAppendReq } from '@eventstore/db-client/generated/streams_pb.js'
import type { ProposedEvent, StoredRecord } from '../record.ts'
import { bytes, entry, type Field, integer, messageOf, nested, text } from './wire.ts'

export type UuidForm = 'string' | 'structured'

const JSON_CONTENT = 'application/json'
const BINARY_CONTENT = 'application/octet-stream'

export const streamName = (identifier: StreamIdentifier | undefined): string =>
  Buffer.from(identifier?.getStreamName_asU8() ?? []).toString('utf8')

export const identifierOf = (stream: string): StreamIdentifier => {
  const identifier = new shared.StreamIdentifier()
  identifier.setStreamName(Buffer.from(stream, 'utf8'))
  return identifier
}

/** The canonical text of an id, whichever of its two forms a client sent; undefined when it is missing. */
export const uuidText = (uuid: UUID | undefined): string | undefined => {
  const structured = uuid?.getStructured()
  if (structured === undefined) return uuid?.getString().toLowerCase()
  const binary = Buffer.alloc(16)
  binary.writeBigInt64BE(BigInt(structured.getMostSignificantBits()), 0)
  binary.writeBigInt64BE(BigInt(structured.getLeastSignificantBits()), 8)
  return binary.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

export const uuidMessage = (id: string, form: UuidForm): UUID => {
  const uuid = new shared.UUID()
  if (form === 'string') return uuid.setString(id)
  const { high, low } = halvesOf(id)
  const structured = new shared.UUID.Structured()
  structured.setMostSignificantBits(high.toString())
  structured.setLeastSignificantBits(low.toString())
  return uuid.setStructured(structured)
}

const halvesOf = (id: string): { high: bigint; low: bigint } => {
  const binary = Buffer.from(id.replaceAll('-', ''), 'hex')
  return { high: binary.readBigInt64BE(0), low: binary.readBigInt64BE(8) }
}

const contentTypeOf = (record: StoredRecord): string => (record.isJson ? JSON_CONTENT : BINARY_CONTENT)

const uuidField = (id: string, form: UuidForm): Field => {
  if (form === 'string') return text(2, id)
  const { high, low } = halvesOf(id)
  return nested(1, integer(1, high), integer(2, low))
}

/** A live event goes to several readers, from the same record in memory. */
const encoded: Readonly<Record<UuidForm, WeakMap<StoredRecord, Buffer>>> = {
  string: new WeakMap(),
  structured: new WeakMap(),
}

/** A `ReadResp` with one event, ready for the wire. */
export const eventMessage = (record: StoredRecord, form: UuidForm): Buffer => {
  const known = encoded[form].get(record)
  if (known !== undefined) return known
  const message = encodeEvent(record, form)
  encoded[form].set(record, message)
  return message
}

type ResolvedLink = { readonly event: StoredRecord | undefined; readonly link: StoredRecord }

const EVENT = 1
const LINK = 2

/** A link with the event that it leads to, or alone when there is none to be read. */
export const linkMessage = ({ event, link }: ResolvedLink, form: UuidForm): Buffer => {
  const fields = [...(event === undefined ? [] : [recordedField(EVENT, event, form)]), recordedField(LINK, link, form)]
  return messageOf(nested(1, ...fields, integer(3, link.position)))
}

const encodeEvent = (record: StoredRecord, form: UuidForm): Buffer =>
  messageOf(nested(1, recordedField(EVENT, record, form), integer(3, record.position)))

/** `ReadResp` ⊃ `ReadEvent` ⊃ `RecordedEvent`; the numbers are those of streams.proto. */
const recordedField = (field: number, record: StoredRecord, form: UuidForm): Field =>
  nested(
    field,
    nested(1, uuidField(record.id, form)),
    nested(2, text(3, record.stream)),
    integer(3, record.revision),
    integer(4, record.position),
    integer(5, record.position),
    entry(6, 'type', record.type),
    entry(6, 'created', record.createdTicks.toString()),
    entry(6, 'content-type', contentTypeOf(record)),
    bytes(7, record.metadata),
    bytes(8, record.data),
  )

export const confirmationMessage = (subscriptionId: string): Uint8Array => {
  const confirmation = new streams.ReadResp.SubscriptionConfirmation()
  confirmation.setSubscriptionId(subscriptionId)
  return new streams.ReadResp().setConfirmation(confirmation).serializeBinary()
}

export const checkpointMessage = (position: bigint): Uint8Array => {
  const checkpoint = new streams.ReadResp.Checkpoint()
  checkpoint.setCommitPosition(position.toString())
  checkpoint.setPreparePosition(position.toString())
  return new streams.ReadResp().setCheckpoint(checkpoint).serializeBinary()
}

export const caughtUpMessage = (): Uint8Array =>
  new streams.ReadResp().setCaughtUp(new streams.ReadResp.CaughtUp()).serializeBinary()

export const streamNotFoundMessage = (stream: string): Uint8Array => {
  const notFound = new streams.ReadResp.StreamNotFound()
  notFound.setStreamIdentifier(identifierOf(stream))
  return new streams.ReadResp().setStreamNotFound(notFound).serializeBinary()
}

export const lastStreamPositionMessage = (revision: bigint): Uint8Array =>
  new streams.ReadResp().setLastStreamPosition(revision.toString()).serializeBinary()

export const firstStreamPositionMessage = (revision: bigint): Uint8Array =>
  new streams.ReadResp().setFirstStreamPosition(revision.toString()).serializeBinary()

type ProposedMessage = Pick<
  BatchAppendReq.ProposedMessage,
  'getId' | 'getMetadataMap' | 'getData_asU8' | 'getCustomMetadata_asU8'
>

const bufferOf = (view: Uint8Array): Buffer => Buffer.from(view.buffer, view.byteOffset, view.byteLength)

/** An event as proposed by either form of append; undefined id or type when they are missing. */
export const proposedOf = (message: ProposedMessage): Partial<ProposedEvent> & Omit<ProposedEvent, 'id' | 'type'> => {
  const id = uuidText(message.getId())
  const type = message.getMetadataMap().get('type')
  return {
    ...(id !== undefined && { id }),
    ...(type !== undefined && { type }),
    isJson: message.getMetadataMap().get('content-type') === JSON_CONTENT,
    data: bufferOf(message.getData_asU8()),
    metadata: bufferOf(message.getCustomMetadata_asU8()),
  }
}
