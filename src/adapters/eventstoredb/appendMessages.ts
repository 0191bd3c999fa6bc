import { unpackToCommandError } from '@eventstore/db-client/dist/streams/appendToStream/unpackError.js'
import code from '@eventstore/db-client/generated/code_pb.js'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import type { BatchAppendResp } from '@eventstore/db-client/generated/streams_pb.js'
import { uint64In } from '../../grpc/nestedFields.ts'
import { ProtobufReader, WIRE, tagOf } from '../../grpc/protobufReader.ts'
import type { MessageWriter } from '../../grpc/protobufWriter.ts'
import { readUuid, writeUuid } from '../../grpc/uuid.ts'
import type { Appended, ExpectedRevision, NewEvent } from '../../ports.ts'
import { UnknownResponse } from './errors.ts'

/** BatchAppend messages. The generated classes would create a dozen objects per append, and copy each payload three times. */

export type Append = {
  readonly stream: string
  readonly events: readonly NewEvent[]
  readonly expected: ExpectedRevision
}

/** The answer to the append with this correlation id. */
export type AppendAnswer = { readonly id: string; readonly outcome: Appended | Error }

/** Far more than an append of this service. A message that the server refuses would end the call with all appends on it. */
const APPEND_BYTES_MAX = 3 * 1024 * 1024
const JSON_CONTENT = 'application/json'

// Field numbers of streams.proto and shared.proto.
const REQUEST = { correlationId: 1, options: 2, proposed: 3, isFinal: 4 }
const OPTIONS = { stream: 1, position: 2, noStream: 3 }
const PROPOSED = { id: 1, metadata: 2, customMetadata: 3, data: 4 }
const STREAM_NAME = 3
const TRUE = 1n

const ANSWER = { correlationId: tagOf(1, WIRE.bytes), error: tagOf(2, WIRE.bytes), success: tagOf(3, WIRE.bytes) }
const SUCCESS = { revision: tagOf(1, WIRE.varint), position: tagOf(3, WIRE.bytes) }
const POSITION = { commit: tagOf(1, WIRE.varint) }

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

/** No deadline: the store compares it with its own clock, so clocks four seconds apart would fail every append. */
const writeOptions = (writer: MessageWriter, { stream, expected }: Append): void => {
  const options = writer.size()
  if (expected === 'no_stream') writer.nested(OPTIONS.noStream, options)
  else writer.presentInteger(OPTIONS.position, expected)
  const identifier = writer.size()
  writer.text(STREAM_NAME, stream)
  writer.nested(OPTIONS.stream, identifier)
  writer.nested(REQUEST.options, options)
}

/** Writes a `BatchAppendReq`, from its last field to its first. Throws if it is too large or no JSON: discard it then. */
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
    else if (tag === SUCCESS.position) position = uint64In(from, POSITION.commit)
    else from.skipField(tag)
  }
  from.close(outer)
  return { ok: true, revision, position }
}

/** The client's error for the reason in the response. It is rare, so the generated decoder reads it. */
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
