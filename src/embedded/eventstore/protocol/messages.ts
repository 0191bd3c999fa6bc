import { Buffer } from 'node:buffer'
import shared from '@eventstore/db-client/generated/shared_pb.js'
import type { StreamIdentifier, UUID } from '@eventstore/db-client/generated/shared_pb.js'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import type { AppendReq, ReadResp } from '@eventstore/db-client/generated/streams_pb.js'
import type { ProposedEvent, StoredRecord } from '../record.ts'
import { halvesOf, type UuidForm, uuidOfHalves } from '../../../grpc/uuid.ts'

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

type Recorded = InstanceType<typeof streams.ReadResp.ReadEvent.RecordedEvent>

const recordedOf = (record: StoredRecord, form: UuidForm): Recorded => {
  const recorded = new streams.ReadResp.ReadEvent.RecordedEvent()
    .setId(uuidMessage(record.id, form))
    .setStreamIdentifier(identifierOf(record.stream))
    .setStreamRevision(record.revision.toString())
    .setPreparePosition(record.position.toString())
    .setCommitPosition(record.position.toString())
    .setCustomMetadata(record.metadata)
    .setData(record.data)
  const described = recorded.getMetadataMap()
  described.set('type', record.type)
  described.set('content-type', contentTypeOf(record))
  described.set('created', record.createdTicks.toString())
  return recorded
}

export const eventMessage = (event: StoredRecord, form: UuidForm): ReadResp => {
  const read = new streams.ReadResp.ReadEvent().setCommitPosition(event.position.toString())
  return new streams.ReadResp().setEvent(read.setEvent(recordedOf(event, form)))
}

type ResolvedLink = { readonly event: StoredRecord | undefined; readonly link: StoredRecord }

/** A link with the event that it refers to, or alone if that cannot be read. */
export const linkMessage = ({ event, link }: ResolvedLink, form: UuidForm): ReadResp => {
  const read = new streams.ReadResp.ReadEvent().setCommitPosition(link.position.toString())
  read.setLink(recordedOf(link, form))
  if (event !== undefined) read.setEvent(recordedOf(event, form))
  return new streams.ReadResp().setEvent(read)
}

export const confirmationMessage = (subscriptionId: string): ReadResp => {
  const confirmation = new streams.ReadResp.SubscriptionConfirmation()
  confirmation.setSubscriptionId(subscriptionId)
  return new streams.ReadResp().setConfirmation(confirmation)
}

export const checkpointMessage = (position: bigint): ReadResp => {
  const checkpoint = new streams.ReadResp.Checkpoint()
  checkpoint.setCommitPosition(position.toString()).setPreparePosition(position.toString())
  return new streams.ReadResp().setCheckpoint(checkpoint)
}

export const caughtUpMessage = (): ReadResp => new streams.ReadResp().setCaughtUp(new streams.ReadResp.CaughtUp())

export const streamNotFoundMessage = (stream: string): ReadResp => {
  const notFound = new streams.ReadResp.StreamNotFound()
  notFound.setStreamIdentifier(identifierOf(stream))
  return new streams.ReadResp().setStreamNotFound(notFound)
}

export const lastStreamPositionMessage = (revision: bigint): ReadResp =>
  new streams.ReadResp().setLastStreamPosition(revision.toString())

export const firstStreamPositionMessage = (revision: bigint): ReadResp =>
  new streams.ReadResp().setFirstStreamPosition(revision.toString())

type ProposedMessage = Pick<
  AppendReq.ProposedMessage,
  'getId' | 'getMetadataMap' | 'getData_asU8' | 'getCustomMetadata_asU8'
>

/** An event whose client may have left these members out. */
export type Proposed = Partial<Pick<ProposedEvent, Optional>> & Omit<ProposedEvent, Optional>
type Optional = 'id' | 'type' | 'isJson'

/** Its bytes are copies: a recent event stays in memory, and must not retain the message that it came in. */
export const proposedOf = (message: ProposedMessage): Proposed => {
  const id = uuidText(message.getId())
  const type = message.getMetadataMap().get('type')
  const contentType = message.getMetadataMap().get('content-type')
  return {
    ...(id !== undefined && { id }),
    ...(type !== undefined && { type }),
    ...(contentType !== undefined && { isJson: contentType === JSON_CONTENT }),
    data: Buffer.from(message.getData_asU8()),
    metadata: Buffer.from(message.getCustomMetadata_asU8()),
  }
}
