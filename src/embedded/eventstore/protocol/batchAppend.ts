import type { ServerDuplexStream } from '@grpc/grpc-js'
import { status } from '@grpc/grpc-js'
import any from 'google-protobuf/google/protobuf/any_pb.js'
import empty from 'google-protobuf/google/protobuf/empty_pb.js'
import shared from '@eventstore/db-client/generated/shared_pb.js'
import statusPb from '@eventstore/db-client/generated/status_pb.js'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import type { Status } from '@eventstore/db-client/generated/status_pb.js'
import type { BatchAppendReq, BatchAppendResp } from '@eventstore/db-client/generated/streams_pb.js'
import { type Expected, NO_REVISION } from '../record.ts'
import type { Writer } from '../writer.ts'
import type { Written } from '../writeRequest.ts'
import { identifierOf, proposedOf, streamName, uuidText } from './messages.ts'
import { APPEND_BYTES_MAX, type Proposal, type Refused, type Target, openProposal } from './appendValidation.ts'
import { unavailable } from './status.ts'

/** The BatchAppend method. */

type Call = ServerDuplexStream<BatchAppendReq, BatchAppendResp>

/** Beyond this number of unanswered appends of one client, its further messages stay in the socket. */
const UNANSWERED_MAX = 2000

type Open = { readonly target: Target; readonly proposal: Proposal; readonly correlationId: BatchAppendReq }

/** `BatchAppend`: many appends over one call, with correlation ids, answered as they are committed. */
export const batchAppend =
  (writer: Writer) =>
  (call: Call): void => {
    // Long because the handlers of one call share its unanswered appends.
    const open = new Map<string, Open>()
    let unanswered = 0
    let ended = false

    const respond = (response: BatchAppendResp): void => {
      unanswered -= 1
      if (call.writable) call.write(response)
      if (unanswered < UNANSWERED_MAX) call.resume()
      if (ended && unanswered === 0) call.end()
    }
    const finish = async ({ target, proposal, correlationId }: Open): Promise<void> => {
      const finished = proposal.finish()
      // A passed deadline takes precedence over every other reason.
      const isLate = target.deadlineMs < Date.now()
      const outcome: Outcome =
        'request' in finished ? await writer.write(finished.request) : isLate ? { kind: 'timeout' } : finished.refused
      respond(responseOf(target, outcome).setCorrelationId(correlationId.getCorrelationId()))
    }
    const receive = (message: BatchAppendReq): void => {
      const id = uuidText(message.getCorrelationId()) ?? ''
      const opened = open.get(id) ?? begin(message)
      // The rest of an append that was refused before its last message is ignored, as by the real server.
      if (opened === undefined) return
      const refused = message.getProposedMessagesList().map(proposed => opened.proposal.add(proposedOf(proposed)))
      if (!message.getIsFinal() && refused.at(-1) === undefined) return void open.set(id, opened)
      open.delete(id)
      unanswered += 1
      if (unanswered >= UNANSWERED_MAX) call.pause()
      void finish(opened)
    }

    call.on('data', receive)
    call.on('error', () => undefined)
    call.on('end', () => {
      ended = true
      if (unanswered === 0) call.end()
    })
  }

const begin = (message: BatchAppendReq): Open | undefined => {
  const options = message.getOptions()
  if (options === undefined) return undefined
  const target = targetOf(options)
  return { target, proposal: openProposal(target), correlationId: message }
}

const targetOf = (options: BatchAppendReq.Options): Target => ({
  stream: streamName(options.getStreamIdentifier()),
  expected: options.hasStreamPosition()
    ? BigInt(options.getStreamPosition())
    : options.hasNoStream()
      ? 'no_stream'
      : options.hasStreamExists()
        ? 'stream_exists'
        : 'any',
  deadlineMs: options.getDeadline()?.toDate().getTime() ?? Number.POSITIVE_INFINITY,
})

type Outcome = Written | Refused

const responseOf = ({ stream, expected }: Target, outcome: Outcome): BatchAppendResp => {
  const response = new streams.BatchAppendResp().setStreamIdentifier(identifierOf(stream))
  if ('kind' in outcome && outcome.kind === 'written') return response.setSuccess(successOf(outcome))
  return response.setError(errorOf(stream, expected, outcome))
}

const successOf = ({ revision, position }: Extract<Written, { kind: 'written' }>): BatchAppendResp.Success => {
  const success = new streams.BatchAppendResp.Success()
  if (revision === NO_REVISION) success.setNoStream(new empty.Empty())
  else success.setCurrentRevision(revision.toString())
  if (position === undefined) return success.setNoPosition(new empty.Empty())
  const at = new shared.AllStreamPosition()
  at.setCommitPosition(position.toString())
  at.setPreparePosition(position.toString())
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
