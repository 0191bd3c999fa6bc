import type { FeedItem, Json, JsonObject, StoredEvent } from '../../ports.ts'
import { textIn, uint64In } from '../../grpc/nestedFields.ts'
import { ProtobufReader, WIRE, tagOf } from '../../grpc/protobufReader.ts'
import { readUuid } from '../../grpc/uuid.ts'

/** Decodes `ReadResp` messages in one pass: the generated decoder creates a dozen objects per event. */

/** `other`: messages that no reader here needs, such as the last revision of a stream, or the absence of the stream. */
export type Answer =
  | Exclude<FeedItem, { kind: 'interrupted' }>
  | { readonly kind: 'confirmed' }
  | { readonly kind: 'other' }

// Field numbers of streams.proto and shared.proto.
const ANSWER = {
  event: tagOf(1, WIRE.bytes),
  confirmation: tagOf(2, WIRE.bytes),
  checkpoint: tagOf(3, WIRE.bytes),
  caughtUp: tagOf(8, WIRE.bytes),
}
const READ_EVENT = { event: tagOf(1, WIRE.bytes) }
const RECORDED = {
  id: tagOf(1, WIRE.bytes),
  stream: tagOf(2, WIRE.bytes),
  revision: tagOf(3, WIRE.varint),
  commitPosition: tagOf(5, WIRE.varint),
  systemMetadata: tagOf(6, WIRE.bytes),
  metadata: tagOf(7, WIRE.bytes),
  data: tagOf(8, WIRE.bytes),
}
const STREAM_IDENTIFIER = { name: tagOf(3, WIRE.bytes) }
const MAP_ENTRY = { key: tagOf(1, WIRE.bytes), value: tagOf(2, WIRE.bytes) }
const CHECKPOINT = { commitPosition: tagOf(1, WIRE.varint) }

/** A tick is 100 ns: four digits after the milliseconds. */
const TICK_DIGITS = 4

const OTHER: Answer = { kind: 'other' }

/** Decodes one answer; `withBytes` keeps the stored bytes of an event beside their decoded form. */
export type Decode = (bytes: Buffer) => Answer

/** Throws Malformed. */
export const answerOf: Decode = bytes => decode(bytes, false)

/** Throws Malformed. */
export const answerWithBytes: Decode = bytes => decode(bytes, true)

const decode = (bytes: Buffer, withBytes: boolean): Answer => {
  const from = new ProtobufReader(bytes)
  let answer: Answer = OTHER
  while (from.hasMore()) {
    const tag = from.tag()
    if (tag === ANSWER.event) answer = readEvent(from, withBytes)
    else if (tag === ANSWER.checkpoint)
      answer = { kind: 'checkpoint', position: uint64In(from, CHECKPOINT.commitPosition) }
    else {
      from.skipField(tag)
      if (tag === ANSWER.caughtUp) answer = { kind: 'caught_up' }
      else if (tag === ANSWER.confirmation) answer = { kind: 'confirmed' }
    }
  }
  return answer
}

/** Requests do not resolve links, so the event of an answer is the stored one. An answer without an event is ignored. */
const readEvent = (from: ProtobufReader, withBytes: boolean): Answer => {
  const outer = from.open()
  let answer: Answer = OTHER
  while (from.hasMore()) {
    const tag = from.tag()
    if (tag === READ_EVENT.event) answer = { kind: 'event', event: readRecorded(from, withBytes) }
    else from.skipField(tag)
  }
  from.close(outer)
  return answer
}

const readRecorded = (from: ProtobufReader, withBytes: boolean): StoredEvent => {
  const outer = from.open()
  let id = ''
  let stream = ''
  let revision = 0n
  let position = 0n
  let data: Buffer | string = ''
  let metadata: Buffer | string = ''
  const systemMetadata: SystemMetadata = { type: '', created: '0', contentType: withBytes ? '' : undefined }
  while (from.hasMore()) {
    const tag = from.tag()
    if (tag === RECORDED.id) id = readUuid(from)
    else if (tag === RECORDED.stream) stream = textIn(from, STREAM_IDENTIFIER.name)
    else if (tag === RECORDED.revision) revision = from.uint64()
    else if (tag === RECORDED.commitPosition) position = from.uint64()
    else if (tag === RECORDED.systemMetadata) readSystemEntry(systemMetadata, from)
    else if (tag === RECORDED.metadata) metadata = withBytes ? from.bytes() : from.text()
    else if (tag === RECORDED.data) data = withBytes ? from.bytes() : from.text()
    else from.skipField(tag)
  }
  from.close(outer)
  const storedAt = timeOf(systemMetadata.created.slice(0, -TICK_DIGITS) || '0')
  return {
    id,
    type: systemMetadata.type,
    data: jsonOf(data.toString()) as JsonObject,
    metadata: jsonOf(metadata.toString()) as JsonObject,
    stream,
    revision,
    position,
    storedAt,
    ...(withBytes && { bytes: bytesOf(data, metadata, systemMetadata) }),
  }
}

/** Copies, because the event may outlive the frame that it came in. */
const bytesOf = (data: Buffer | string, metadata: Buffer | string, { created, contentType }: SystemMetadata) => ({
  data: Buffer.from(data),
  metadata: Buffer.from(metadata),
  contentType: contentType ?? '',
  createdTicks: BigInt(created),
})

let lastMs = '0'
let lastTime = new Date(0).toISOString()

/** RFC 3339. Events of one commit have the same time, so the last one is kept. */
const timeOf = (ms: string): string => {
  if (ms !== lastMs) {
    lastMs = ms
    lastTime = new Date(Number(ms)).toISOString()
  }
  return lastTime
}

/** The content type is decoded with the bytes alone. */
type SystemMetadata = { type: string; created: string; contentType: string | undefined }

/** Reads one entry of the metadata map: type, time of the commit or content type of the event; others are ignored. */
const readSystemEntry = (systemMetadata: SystemMetadata, from: ProtobufReader): void => {
  const outer = from.open()
  let key = ''
  let value = ''
  while (from.hasMore()) {
    const tag = from.tag()
    if (tag === MAP_ENTRY.key) key = from.text()
    else if (tag === MAP_ENTRY.value && (key !== 'content-type' || systemMetadata.contentType !== undefined))
      value = from.text()
    else from.skipField(tag)
  }
  from.close(outer)
  if (key === 'type') systemMetadata.type = value
  else if (key === 'created') systemMetadata.created = value
  else if (key === 'content-type' && systemMetadata.contentType !== undefined) systemMetadata.contentType = value
}

/** Data that is not JSON was not written by this service. It is returned as text, which no event schema accepts. */
const jsonOf = (text: string): Json => {
  if (text === '') return {}
  try {
    return JSON.parse(text) as Json
  } catch {
    return text
  }
}
