import { status } from '@grpc/grpc-js'
import any from 'google-protobuf/google/protobuf/any_pb.js'
import empty from 'google-protobuf/google/protobuf/empty_pb.js'
import shared from '@eventstore/db-client/generated/shared_pb.js'
import statusPb from '@eventstore/db-client/generated/status_pb.js'
import type { Status } from '@eventstore/db-client/generated/status_pb.js'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import type { BatchAppendResp } from '@eventstore/db-client/generated/streams_pb.js'
import { type Expected, NO_REVISION } from '../record.ts'
import type { Written } from '../writeRequest.ts'
import { APPEND_BYTES_MAX, type Refused, type Target } from './appendValidation.ts'
import { identifierOf } from './messages.ts'
import { unavailable } from './status.ts'

export type Outcome = Written | Refused

export const responseOf = ({ stream, expected }: Target, outcome: Outcome): BatchAppendResp => {
  const response = new streams.BatchAppendResp().setStreamIdentifier(identifierOf(stream))
  return 'kind' in outcome && outcome.kind === 'written'
    ? response.setSuccess(successOf(outcome))
    : response.setError(errorOf(stream, expected, outcome))
}

const successOf = ({ revision, position }: Extract<Written, { kind: 'written' }>): BatchAppendResp.Success => {
  const success = new streams.BatchAppendResp.Success()
  if (revision === NO_REVISION) success.setNoStream(new empty.Empty())
  else success.setCurrentRevision(revision.toString())
  if (position === undefined) return success.setNoPosition(new empty.Empty())
  const at = new shared.AllStreamPosition()
  at.setCommitPosition(position.toString()).setPreparePosition(position.toString())
  return success.setPosition(at)
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

/** Answered as by the real server when a commit is not acknowledged in time; the call continues for its other appends. */
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
