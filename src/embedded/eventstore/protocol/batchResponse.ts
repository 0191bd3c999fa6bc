import { status } from '@grpc/grpc-js'
import any from 'google-protobuf/google/protobuf/any_pb.js'
import empty from 'google-protobuf/google/protobuf/empty_pb.js'
import shared from '@eventstore/db-client/generated/shared_pb.js'
import statusPb from '@eventstore/db-client/generated/status_pb.js'
import type { Status } from '@eventstore/db-client/generated/status_pb.js'
import { MessageWriter } from '../../../grpc/protobufWriter.ts'
import { type Expected, NO_REVISION } from '../record.ts'
import type { Written } from '../writeRequest.ts'
import { APPEND_BYTES_MAX, type Refused, type Target } from './appendValidation.ts'
import { identifierOf } from './messages.ts'
import { unavailable } from './status.ts'

/** Encoding of the BatchAppend method's responses. */

export type BatchResponse = {
  /** As encoded by the client. */
  readonly correlationId: Buffer | undefined
  readonly target: Target
  readonly outcome: Outcome
}
export type Outcome = Written | Refused

// Field numbers from streams.proto and shared.proto.
const RESPONSE = { correlationId: 1, error: 2, success: 3, stream: 4 }
const SUCCESS = { revision: 1, noStream: 2, position: 3, noPosition: 4 }
const POSITION = { commit: 1, prepare: 2 }
const STREAM_NAME = 3

/** Messages are encoded one after the other, so one writer is enough. */
const writer = new MessageWriter()

/** The responses as messages of gRPC with their prefixes, in this order. They are written from the last to the first. */
export const responsesWithPrefixes = (responses: readonly BatchResponse[]): Buffer => {
  writer.begin()
  for (const response of responses.toReversed()) {
    const since = writer.size()
    writeResponse(response)
    writer.framed(since)
  }
  return writer.message()
}

export const responseMessage = (response: BatchResponse): Buffer => {
  writer.begin()
  writeResponse(response)
  return writer.message()
}

const writeResponse = ({ correlationId, target, outcome }: BatchResponse): void => {
  const { stream, expected } = target
  const identifier = writer.size()
  writer.text(STREAM_NAME, stream)
  writer.nested(RESPONSE.stream, identifier)
  if ('kind' in outcome && outcome.kind === 'written') writeSuccess(outcome)
  else writer.bytes(RESPONSE.error, Buffer.from(errorOf(stream, expected, outcome).serializeBinary()))
  if (correlationId !== undefined) {
    const id = writer.size()
    writer.raw(correlationId)
    writer.nested(RESPONSE.correlationId, id)
  }
}

const writeSuccess = ({ revision, position }: Extract<Written, { kind: 'written' }>): void => {
  const success = writer.size()
  if (position === undefined) writer.nested(SUCCESS.noPosition, success)
  else {
    writer.integer(POSITION.prepare, position)
    writer.integer(POSITION.commit, position)
    writer.nested(SUCCESS.position, success)
  }
  if (revision === NO_REVISION) writer.nested(SUCCESS.noStream, writer.size())
  else writer.presentInteger(SUCCESS.revision, revision)
  writer.nested(RESPONSE.success, success)
}

const errorOf = (stream: string, expected: Expected, outcome: Exclude<Outcome, { kind: 'written' }>): Status => {
  if ('reason' in outcome) return refusalOf(outcome)
  switch (outcome.kind) {
    case 'wrong_version':
      return statusOf(
        status.ALREADY_EXISTS,
        'WrongExpectedVersion',
        conflictOf(expected, outcome.actual).serializeBinary(),
      )
    case 'deleted': {
      const deleted = new shared.StreamDeleted().setStreamIdentifier(identifierOf(stream))
      return statusOf(status.NOT_FOUND, 'StreamDeleted', deleted.serializeBinary())
    }
    case 'timeout':
      return statusOf(status.DEADLINE_EXCEEDED, 'Timeout', new shared.Timeout().serializeBinary())
    case 'unavailable':
      return unavailableOf(outcome.effect)
  }
}

/**
 * An append with an unknown outcome is answered as the real server does if its commit is not acknowledged in time. The
 * call continues, since its other appends have their own outcomes.
 */
const unavailableOf = (effect: 'none' | 'unknown'): Status => {
  const { code, details } = unavailable(effect)
  return effect === 'unknown'
    ? statusOf(status.DEADLINE_EXCEEDED, 'Timeout', new shared.Timeout().serializeBinary(), details)
    : statusOf(code, 'Unknown', new shared.Unknown().serializeBinary(), details)
}

const refusalOf = ({ reason, failure }: Refused): Status => {
  if (reason === 'invalid') {
    const bad = new shared.BadRequest().setMessage(failure.details)
    return statusOf(failure.code, 'BadRequest', bad.serializeBinary())
  }
  const exceeded = new shared.MaximumAppendSizeExceeded().setMaxappendsize(APPEND_BYTES_MAX)
  return statusOf(failure.code, 'MaximumAppendSizeExceeded', exceeded.serializeBinary())
}

const conflictOf = (expected: Expected, actual: bigint) => {
  const conflict = new shared.WrongExpectedVersion()
  if (actual === NO_REVISION) conflict.setCurrentNoStream(new empty.Empty())
  else conflict.setCurrentStreamRevision(actual.toString())
  if (expected === 'any') return conflict.setExpectedAny(new empty.Empty())
  if (expected === 'no_stream') return conflict.setExpectedNoStream(new empty.Empty())
  if (expected === 'stream_exists') return conflict.setExpectedStreamExists(new empty.Empty())
  return conflict.setExpectedStreamPosition(expected.toString())
}

/** The code and the text differ from those of the other methods; some clients know an error by them alone. */
const statusOf = (code: number, detail: string, bytes: Uint8Array, message: string = detail): Status => {
  const details = new any.Any()
  details.pack(bytes, `event_store.client.${detail}`)
  const result = new statusPb.Status()
  result.setCode(code)
  result.setMessage(message)
  return result.setDetails(details)
}
