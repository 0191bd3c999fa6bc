import { Buffer } from 'node:buffer'
import shared from '@eventstore/db-client/generated/shared_pb.js'
import type { StreamIdentifier, UUID } from '@eventstore/db-client/generated/shared_pb.js'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import type { AppendReq } from '@eventstore/db-client/generated/streams_pb.js'
import type { ProposedEvent, StoredRecord } from '../record.ts'
import { MessageWriter } from '../../../grpc/protobufWriter.ts'
import { halvesOf, type UuidForm, uuidOfHalves, writeUuid } from '../../../grpc/uuid.ts'

/** Encoding of stored events, and decoding of proposed ones. */

export const JSON_CONTENT = 'application/json'
const BINARY_CONTENT = 'application/octet-stream'

export const streamName = (identifier: StreamIdentifier | undefined): string =>
  Buffer.from(identifier?.getStreamName_asU8() ?? []).toString('utf8')

export const identifierOf = (stream: string): StreamIdentifier => {
  const identifier = new shared.StreamIdentifier()
  identifier.setStreamName(Buffer.from(stream, 'utf8'))
  return identifier
}

/** The canonical text of an id in either of its two forms; undefined if it is missing. */
export const uuidText = (uuid: UUID | undefined): string | undefined => {
  const structured = uuid?.getStructured()
  if (structured === undefined) return uuid?.getString().toLowerCase()
  return uuidOfHalves(BigInt(structured.getMostSignificantBits()), BigInt(structured.getLeastSignificantBits()))
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

const contentTypeOf = (record: StoredRecord): string => (record.isJson ? JSON_CONTENT : BINARY_CONTENT)

/** Messages are encoded one after the other, so one writer is enough. */
const writer = new MessageWriter()

/** `ReadEvent` ⊃ `RecordedEvent`, from the last field to the first; field numbers from streams.proto. */
const writeRecorded = (field: number, record: StoredRecord, form: UuidForm): void => {
  const recorded = writer.size()
  writer.bytes(8, record.data)
  writer.bytes(7, record.metadata)
  writer.entry(6, 'content-type', contentTypeOf(record))
  writer.entry(6, 'created', record.createdTicks.toString())
  writer.entry(6, 'type', record.type)
  writer.integer(5, record.position)
  writer.integer(4, record.position)
  writer.integer(3, record.revision)
  const identifier = writer.size()
  writer.text(3, record.stream)
  writer.nested(2, identifier)
  writeUuid(writer, 1, record.id, form)
  writer.nested(field, recorded)
}

const READ_EVENT = 1
const EVENT = 1
const LINK = 2
const COMMIT_POSITION = 3

const encodeEvent = (record: StoredRecord, form: UuidForm): Buffer => {
  writer.begin()
  writer.integer(COMMIT_POSITION, record.position)
  writeRecorded(EVENT, record, form)
  writer.nested(READ_EVENT, 0)
  return writer.message()
}

/** An encoded `ReadResp` with one event. An event in the tail of the log keeps its encoding for other readers. */
export const eventMessage = (record: StoredRecord, form: UuidForm): Buffer => {
  const { encodings } = record
  const known = encodings?.[form]
  if (known !== undefined) return known
  const message = encodeEvent(record, form)
  if (encodings?.areKept === true) encodings[form] = message
  return message
}

type ResolvedLink = { readonly event: StoredRecord | undefined; readonly link: StoredRecord }

/** A link with the event that it refers to, or alone if that cannot be read. */
export const linkMessage = ({ event, link }: ResolvedLink, form: UuidForm): Buffer => {
  writer.begin()
  writer.integer(COMMIT_POSITION, link.position)
  writeRecorded(LINK, link, form)
  if (event !== undefined) writeRecorded(EVENT, event, form)
  writer.nested(READ_EVENT, 0)
  return writer.message()
}

export const confirmationMessage = (subscriptionId: string): Uint8Array => {
  const confirmation = new streams.ReadResp.SubscriptionConfirmation()
  confirmation.setSubscriptionId(subscriptionId)
  return new streams.ReadResp().setConfirmation(confirmation).serializeBinary()
}

const CHECKPOINT = 3
const CHECKPOINT_COMMIT = 1
const CHECKPOINT_PREPARE = 2

/** Sent to each filtered subscription after nearly every commit. */
export const checkpointMessage = (position: bigint): Buffer => {
  writer.begin()
  writer.integer(CHECKPOINT_PREPARE, position)
  writer.integer(CHECKPOINT_COMMIT, position)
  writer.nested(CHECKPOINT, 0)
  return writer.message()
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
  AppendReq.ProposedMessage,
  'getId' | 'getMetadataMap' | 'getData_asU8' | 'getCustomMetadata_asU8'
>

const bufferOf = (view: Uint8Array): Buffer => Buffer.from(view.buffer, view.byteOffset, view.byteLength)

/** An event whose client may have left these members out. */
export type Proposed = Partial<Pick<ProposedEvent, Optional>> & Omit<ProposedEvent, Optional>
type Optional = 'id' | 'type' | 'isJson'

/** A proposed event of the Append method. */
export const proposedOf = (message: ProposedMessage): Proposed => {
  const id = uuidText(message.getId())
  const type = message.getMetadataMap().get('type')
  const contentType = message.getMetadataMap().get('content-type')
  return {
    ...(id !== undefined && { id }),
    ...(type !== undefined && { type }),
    ...(contentType !== undefined && { isJson: contentType === JSON_CONTENT }),
    data: bufferOf(message.getData_asU8()),
    metadata: bufferOf(message.getCustomMetadata_asU8()),
  }
}
