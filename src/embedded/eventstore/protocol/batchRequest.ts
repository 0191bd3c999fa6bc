import { textIn } from '../../../grpc/nestedFields.ts'
import { ProtobufReader, WIRE, tagOf } from '../../../grpc/protobufReader.ts'
import { readUuid } from '../../../grpc/uuid.ts'
import type { Expected } from '../record.ts'
import type { Target } from './appendValidation.ts'
import { JSON_CONTENT, type Proposed } from './messages.ts'

/** Decoding of the BatchAppend method's messages in one pass, in their older and their newer form. */

export type BatchRequest = {
  /** As encoded by the client, because the response repeats it; undefined if it is absent. */
  readonly correlationId: Buffer | undefined
  readonly target: Target | undefined
  readonly events: readonly Proposed[]
  readonly isFinal: boolean
}

// Field numbers from streams.proto and shared.proto.
const REQUEST = {
  correlationId: tagOf(1, WIRE.bytes),
  options: tagOf(2, WIRE.bytes),
  proposed: tagOf(3, WIRE.bytes),
  isFinal: tagOf(4, WIRE.varint),
}
/** Clients since version 21.10.1 send their deadline as a duration, older ones as a point in time. */
const OPTIONS = {
  stream: tagOf(1, WIRE.bytes),
  position: tagOf(2, WIRE.varint),
  noStream: tagOf(3, WIRE.bytes),
  any: tagOf(4, WIRE.bytes),
  streamExists: tagOf(5, WIRE.bytes),
  deadline: tagOf(6, WIRE.bytes),
  timeout: tagOf(7, WIRE.bytes),
}
const STREAM_NAME = tagOf(3, WIRE.bytes)
const TIME = { seconds: tagOf(1, WIRE.varint), nanos: tagOf(2, WIRE.varint) }
const PROPOSED = {
  id: tagOf(1, WIRE.bytes),
  metadata: tagOf(2, WIRE.bytes),
  customMetadata: tagOf(3, WIRE.bytes),
  data: tagOf(4, WIRE.bytes),
}
const ENTRY = { key: tagOf(1, WIRE.bytes), value: tagOf(2, WIRE.bytes) }

const MS_PER_SECOND = 1000
const NS_PER_MS = 1_000_000
const INT64_BITS = 64
const EMPTY = Buffer.alloc(0)

/** Throws Malformed. */
export const readBatchRequest = (bytes: Buffer): BatchRequest => {
  const from = new ProtobufReader(bytes)
  let correlationId: Buffer | undefined
  let target: Target | undefined
  let isFinal = false
  const events: Proposed[] = []
  while (from.hasMore()) {
    const tag = from.tag()
    if (tag === REQUEST.correlationId) correlationId = from.bytes()
    else if (tag === REQUEST.options) target = readOptions(from)
    else if (tag === REQUEST.proposed) events.push(readProposed(from))
    else if (tag === REQUEST.isFinal) isFinal = from.uint64() !== 0n
    else from.skipField(tag)
  }
  return { correlationId, target, events, isFinal }
}

const EXPECTED_BY_TAG: ReadonlyMap<number, Expected> = new Map([
  [OPTIONS.noStream, 'no_stream'],
  [OPTIONS.any, 'any'],
  [OPTIONS.streamExists, 'stream_exists'],
])

const readOptions = (from: ProtobufReader): Target => {
  const outer = from.open()
  let stream = ''
  let expected: Expected = 'any'
  let deadlineMs: number | undefined
  let timeoutMs: number | undefined
  while (from.hasMore()) {
    const tag = from.tag()
    if (tag === OPTIONS.stream) stream = textIn(from, STREAM_NAME)
    else if (tag === OPTIONS.position) expected = from.uint64()
    else if (tag === OPTIONS.deadline) deadlineMs = readTime(from)
    else if (tag === OPTIONS.timeout) timeoutMs = readTime(from)
    else {
      from.skipField(tag)
      expected = EXPECTED_BY_TAG.get(tag) ?? expected
    }
  }
  from.close(outer)
  if (timeoutMs !== undefined) deadlineMs ??= Date.now() + timeoutMs
  return { stream, expected, deadlineMs: deadlineMs ?? Number.POSITIVE_INFINITY }
}

/** A timestamp or a duration in milliseconds. */
const readTime = (from: ProtobufReader): number => {
  const outer = from.open()
  let seconds = 0n
  let nanos = 0n
  while (from.hasMore()) {
    const tag = from.tag()
    if (tag === TIME.seconds) seconds = from.uint64()
    else if (tag === TIME.nanos) nanos = from.uint64()
    else from.skipField(tag)
  }
  from.close(outer)
  const signed = (value: bigint): number => Number(BigInt.asIntN(INT64_BITS, value))
  return signed(seconds) * MS_PER_SECOND + signed(nanos) / NS_PER_MS
}

const readProposed = (from: ProtobufReader): Proposed => {
  const outer = from.open()
  let id: string | undefined
  let data: Buffer = EMPTY
  let metadata: Buffer = EMPTY
  const described: Described = { type: undefined, contentType: undefined }
  while (from.hasMore()) {
    const tag = from.tag()
    if (tag === PROPOSED.id) id = readUuid(from)
    else if (tag === PROPOSED.metadata) readEntry(described, from)
    else if (tag === PROPOSED.customMetadata) metadata = from.bytes()
    else if (tag === PROPOSED.data) data = from.bytes()
    else from.skipField(tag)
  }
  from.close(outer)
  const { type, contentType } = described
  return {
    ...(id !== undefined && { id }),
    ...(type !== undefined && { type }),
    ...(contentType !== undefined && { isJson: contentType === JSON_CONTENT }),
    // Copies, because a recent event stays in memory, and must not retain the bytes that it was received with.
    data: Buffer.from(data),
    metadata: Buffer.from(metadata),
  }
}

type Described = { type: string | undefined; contentType: string | undefined }

/** Reads one entry of the metadata map: the type, the content type, or an entry that is ignored. */
const readEntry = (described: Described, from: ProtobufReader): void => {
  const outer = from.open()
  let key = ''
  let value = ''
  while (from.hasMore()) {
    const tag = from.tag()
    if (tag === ENTRY.key) key = from.text()
    else if (tag === ENTRY.value) value = from.text()
    else from.skipField(tag)
  }
  from.close(outer)
  if (key === 'type') described.type = value
  else if (key === 'content-type') described.contentType = value
}
