import { unpackToCommandError } from '@eventstore/db-client/dist/streams/appendToStream/unpackError.js'
import code from '@eventstore/db-client/generated/code_pb.js'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import type { BatchAppendResp } from '@eventstore/db-client/generated/streams_pb.js'
import { ProtobufReader, WIRE, tagOf } from '../../grpc/protobufReader.ts'
import type { MessageWriter } from '../../grpc/protobufWriter.ts'
import type { Appended, ExpectedRevision, NewEvent } from '../../ports.ts'
import { UnknownResponse } from './errors.ts'

/**
 * Messages of the store's BatchAppend method, encoded from and decoded into the types of the port. The generated
 * classes would create a dozen objects per append, and copy each payload three times.
 */

export type Append = {
  readonly stream: string
  readonly events: readonly NewEvent[]
  readonly expected: ExpectedRevision
}

/** The answer to the append with this correlation id. */
export type AppendAnswer = { readonly id: string; readonly outcome: Appended | Error }

/**
 * Far more than an append of this service, and less than a server accepts: an oversized message would end the call with
 * all appends on it.
 */
const APPEND_BYTES_MAX = 3 * 1024 * 1024
const JSON_CONTENT = 'application/json'

// Field numbers of streams.proto and shared.proto.
const REQUEST = { correlationId: 1, options: 2, proposed: 3, isFinal: 4 }
const OPTIONS = { stream: 1, position: 2, noStream: 3 }
const PROPOSED = { id: 1, metadata: 2, customMetadata: 3, data: 4 }
const UUID = { structured: 1, string: 2 }
const STREAM_NAME = 3
const TRUE = 1n

const ANSWER = { correlationId: tagOf(1, WIRE.bytes), error: tagOf(2, WIRE.bytes), success: tagOf(3, WIRE.bytes) }
const SUCCESS = { revision: tagOf(1, WIRE.varint), position: tagOf(3, WIRE.bytes) }
const POSITION = { commit: tagOf(1, WIRE.varint) }
const UUID_TEXT = tagOf(UUID.string, WIRE.bytes)
const UUID_STRUCTURED = tagOf(UUID.structured, WIRE.bytes)
const STRUCTURED = { high: tagOf(1, WIRE.varint), low: tagOf(2, WIRE.varint) }

const writeUuid = (writer: MessageWriter, field: number, id: string): void => {
  const uuid = writer.size()
  writer.text(UUID.string, id)
  writer.nested(field, uuid)
}

/** Returns the size of the event's data. */
const writeProposed = (writer: MessageWriter, { id, type, data, metadata }: NewEvent): number => {
  const proposed = writer.size()
  writer.text(PROPOSED.data, JSON.stringify(data))
  const dataBytes = writer.size() - proposed
  writer.text(PROPOSED.customMetadata, JSON.stringify(metadata))
  writer.entry(PROPOSED.metadata, 'content-type', JSON_CONTENT)
  writer.entry(PROPOSED.metadata, 'type', type)
  writeUuid(writer, PROPOSED.id, id)
  writer.nested(REQUEST.proposed, proposed)
  return dataBytes
}

/**
 * Options have no deadline: it would be a time of this machine's clock that the store compares with its own, so that
 * clocks four seconds apart would fail every append.
 */
const writeOptions = (writer: MessageWriter, { stream, expected }: Append): void => {
  const options = writer.size()
  if (expected === 'no_stream') writer.nested(OPTIONS.noStream, options)
  else writer.presentInteger(OPTIONS.position, expected)
  const identifier = writer.size()
  writer.text(STREAM_NAME, stream)
  writer.nested(OPTIONS.stream, identifier)
  writer.nested(REQUEST.options, options)
}

/**
 * Writes a `BatchAppendReq` with this correlation id in front of what is there, from its last field to its first. Throws
 * if the append is too large, or its data are no JSON; the message must then be discarded.
 */
export const writeAppend = (writer: MessageWriter, id: string, append: Append): void => {
  const { stream, events } = append
  writer.integer(REQUEST.isFinal, TRUE)
  let dataBytes = 0
  for (let n = events.length - 1; n >= 0; n -= 1) dataBytes += writeProposed(writer, events[n] as NewEvent)
  if (dataBytes > APPEND_BYTES_MAX) throw new RangeError(`An append of ${dataBytes} bytes to ${stream} is too large.`)
  writeOptions(writer, append)
  writeUuid(writer, REQUEST.correlationId, id)
}

/** Throws Malformed. */
export const appendAnswerOf = (bytes: Buffer): AppendAnswer => {
  const from = new ProtobufReader(bytes)
  let id = ''
  let outcome: Appended | undefined
  let refused = false
  while (from.hasMore()) {
    const tag = from.tag()
    if (tag === ANSWER.correlationId) id = readUuid(from)
    else if (tag === ANSWER.success) outcome = readSuccess(from)
    else {
      from.skipField(tag)
      refused ||= tag === ANSWER.error
    }
  }
  if (outcome !== undefined) return { id, outcome }
  return { id, outcome: refused ? refusalIn(bytes) : new UnknownResponse('neither error nor success') }
}

const readSuccess = (from: ProtobufReader): Appended => {
  const outer = from.open()
  let revision = 0n
  let position = 0n
  while (from.hasMore()) {
    const tag = from.tag()
    if (tag === SUCCESS.revision) revision = from.uint64()
    else if (tag === SUCCESS.position) position = readPosition(from)
    else from.skipField(tag)
  }
  from.close(outer)
  return { ok: true, revision, position }
}

const readPosition = (from: ProtobufReader): bigint => {
  const outer = from.open()
  let position = 0n
  while (from.hasMore()) {
    const tag = from.tag()
    if (tag === POSITION.commit) position = from.uint64()
    else from.skipField(tag)
  }
  from.close(outer)
  return position
}

/** The canonical text of an id in either of its two forms; empty if it is absent. */
const readUuid = (from: ProtobufReader): string => {
  const outer = from.open()
  let id = ''
  while (from.hasMore()) {
    const tag = from.tag()
    if (tag === UUID_TEXT) id = from.text()
    else if (tag === UUID_STRUCTURED) id = readStructured(from)
    else from.skipField(tag)
  }
  from.close(outer)
  return id
}

const readStructured = (from: ProtobufReader): string => {
  const outer = from.open()
  let high = 0n
  let low = 0n
  while (from.hasMore()) {
    const tag = from.tag()
    if (tag === STRUCTURED.high) high = from.uint64()
    else if (tag === STRUCTURED.low) low = from.uint64()
    else from.skipField(tag)
  }
  from.close(outer)
  const hex = ((high << 64n) | low).toString(16).padStart(32, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** The client's error for the reason in the response. It is rare, so that the generated decoder reads it. */
const refusalIn = (bytes: Buffer): Error => {
  const answer = streams.BatchAppendResp.deserializeBinary(new Uint8Array(bytes))
  const refused = answer.getError()
  if (refused === undefined) return new UnknownResponse('neither error nor success')
  if (refused.getCode() === code.Code.UNAVAILABLE || refused.getDetails() === undefined)
    return new UnknownResponse(refused.getMessage())
  return unpackToCommandError(refused, streamIn(answer))
}

const streamIn = (answer: BatchAppendResp): string =>
  Buffer.from(answer.getStreamIdentifier()?.getStreamName_asU8() ?? []).toString('utf8')
