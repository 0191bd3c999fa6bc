import { BinaryReader } from 'google-protobuf'
import duration from 'google-protobuf/google/protobuf/duration_pb.js'
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js'
import type { BatchAppendReq } from '@eventstore/db-client/generated/streams_pb.js'
import type { Target } from './appendValidation.ts'
import { streamName } from './messages.ts'

/** Older clients send a deadline as a point in time, later ones a duration, in a field without generated code. */
export type BatchRequest = { readonly message: BatchAppendReq; readonly timeoutMs: number | undefined }

const OPTIONS_FIELD = 2
const TIMEOUT_FIELD = 7
const MS_PER_SECOND = 1000
const NS_PER_MS = 1_000_000

const { batchAppend } = streamsGrpc.StreamsService

/** The definition of the method, whose requests include the duration. */
export const BATCH_APPEND = {
  ...batchAppend,
  requestDeserialize: (bytes: Buffer): BatchRequest => ({
    message: batchAppend.requestDeserialize(bytes),
    timeoutMs: timeoutIn(bytes),
  }),
}

export const batchTargetOf = ({ message, timeoutMs }: BatchRequest): Target | undefined => {
  const options = message.getOptions()
  if (options === undefined) return undefined
  const deadline = options.getDeadline()
  return {
    stream: streamName(options.getStreamIdentifier()),
    expected: options.hasStreamPosition()
      ? BigInt(options.getStreamPosition())
      : options.hasNoStream()
        ? 'no_stream'
        : options.hasStreamExists()
          ? 'stream_exists'
          : 'any',
    deadlineMs:
      deadline !== undefined ? millisecondsOf(deadline) : Date.now() + (timeoutMs ?? Number.POSITIVE_INFINITY),
  }
}

type Time = { getSeconds(): number; getNanos(): number }

const millisecondsOf = (time: Time): number => time.getSeconds() * MS_PER_SECOND + time.getNanos() / NS_PER_MS

const timeoutIn = (bytes: Uint8Array): number | undefined => {
  const options = bytesOfField(bytes, OPTIONS_FIELD)
  const timeout = options && bytesOfField(options, TIMEOUT_FIELD)
  return timeout && millisecondsOf(duration.Duration.deserializeBinary(timeout))
}

/** The last value of a field, which is the one that counts. */
const bytesOfField = (message: Uint8Array, field: number): Uint8Array | undefined => {
  const reader = new BinaryReader(message)
  let bytes: Uint8Array | undefined
  while (reader.nextField()) {
    if (reader.getFieldNumber() === field) bytes = reader.readBytes()
    else reader.skipField()
  }
  return bytes
}
