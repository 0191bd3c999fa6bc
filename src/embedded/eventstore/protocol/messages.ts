import { Buffer } from 'node:buffer'
import shared from '@eventstore/db-client/generated/shared_pb.js'
import type { StreamIdentifier, UUID } from '@eventstore/db-client/generated/shared_pb.js'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import type { BatchAppendReq } from '@eventstore/db-client/generated/streams_pb.js'
import type { ProposedEvent, StoredRecord } from '../record.ts'

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
  const bytes = Buffer.alloc(16)
  bytes.writeBigInt64BE(BigInt(structured.getMostSignificantBits()), 0)
  bytes.writeBigInt64BE(BigInt(structured.getLeastSignificantBits()), 8)
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

export const uuidMessage = (id: string, form: UuidForm): UUID => {
  const uuid = new shared.UUID()
  if (form === 'string') return uuid.setString(id)
  const bytes = Buffer.from(id.replaceAll('-', ''), 'hex')
  const structured = new shared.UUID.Structured()
  structured.setMostSignificantBits(bytes.readBigInt64BE(0).toString())
  structured.setLeastSignificantBits(bytes.readBigInt64BE(8).toString())
  return uuid.setStructured(structured)
}

const contentTypeOf = (record: StoredRecord): string => (record.isJson ? JSON_CONTENT : BINARY_CONTENT)

const recordedMessage = (record: StoredRecord, form: UuidForm) => {
  const recorded = new streams.ReadResp.ReadEvent.RecordedEvent()
  const position = record.position.toString()
  recorded.setId(uuidMessage(record.id, form))
  recorded.setStreamIdentifier(identifierOf(record.stream))
  recorded.setStreamRevision(record.revision.toString())
  recorded.setPreparePosition(position)
  recorded.setCommitPosition(position)
  recorded.getMetadataMap().set('type', record.type)
  recorded.getMetadataMap().set('created', record.createdTicks.toString())
  recorded.getMetadataMap().set('content-type', contentTypeOf(record))
  recorded.setCustomMetadata(record.metadata)
  recorded.setData(record.data)
  return recorded
}

/** A `ReadResp` with one event, ready for the wire. */
export const eventMessage = (record: StoredRecord, form: UuidForm): Uint8Array => {
  const event = new streams.ReadResp.ReadEvent()
  event.setEvent(recordedMessage(record, form))
  event.setCommitPosition(record.position.toString())
  return new streams.ReadResp().setEvent(event).serializeBinary()
}

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

const bufferOf = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

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
