import { BinaryReader } from 'google-protobuf'
import duration from 'google-protobuf/google/protobuf/duration_pb.js'
import timestamp from 'google-protobuf/google/protobuf/timestamp_pb.js'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import type { BatchAppendReq } from '@eventstore/db-client/generated/streams_pb.js'

/** Decoding of the BatchAppend method's messages, in their older and their newer form. */

/** Field numbers from streams.proto. */
const OPTIONS = 2
const DEADLINE = 7

const MS_PER_SECOND = 1000
const NS_PER_MS = 1_000_000

/**
 * Decodes a message. Clients since version 21.10.1 send their deadline as a duration, which the generated classes do not
 * have; it becomes the point in time that older clients send.
 */
export const readBatchRequest = (bytes: Uint8Array): BatchAppendReq => {
  const message = streams.BatchAppendReq.deserializeBinary(bytes)
  const options = message.getOptions()
  const timeoutMs = options && !options.hasDeadline() ? timeoutOf(bytes) : undefined
  if (timeoutMs !== undefined) options?.setDeadline(timestamp.Timestamp.fromDate(new Date(Date.now() + timeoutMs)))
  return message
}

const timeoutOf = (bytes: Uint8Array): number | undefined => {
  const encoded = lastField(lastField(bytes, OPTIONS), DEADLINE)
  const timeout = encoded && duration.Duration.deserializeBinary(encoded)
  return timeout && timeout.getSeconds() * MS_PER_SECOND + timeout.getNanos() / NS_PER_MS
}

/** The last occurrence of an embedded message, without its events and other fields being decoded. */
const lastField = (bytes: Uint8Array | undefined, field: number): Uint8Array | undefined => {
  let found: Uint8Array | undefined
  const reader = new BinaryReader(bytes)
  while (bytes !== undefined && reader.nextField()) {
    if (reader.getFieldNumber() === field) found = reader.readBytes()
    else reader.skipField()
  }
  return found
}
