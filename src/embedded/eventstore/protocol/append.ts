import type { ServerReadableStream, sendUnaryData } from '@grpc/grpc-js'
import shared from '@eventstore/db-client/generated/shared_pb.js'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import type { AppendReq, AppendResp } from '@eventstore/db-client/generated/streams_pb.js'
import { type Expected, NO_REVISION } from '../record.ts'
import type { Writer } from '../writer.ts'
import type { Written } from '../writeRequest.ts'
import { proposedOf, streamName } from './messages.ts'
import { type Proposal, openProposal } from './appendValidation.ts'
import { deadlineOf } from './deadline.ts'
import { type Failure, invalidArgument, notWritten } from './status.ts'

type Call = ServerReadableStream<AppendReq, AppendResp>

/** Options, a message for each event, one response. A refusal is sent at once: the rest may take a slow client too long. */
export const append =
  (writer: Writer) =>
  (call: Call, callback: sendUnaryData<AppendResp>): void => {
    let proposal: Proposal | undefined
    let isAnswered = false
    const answer = (outcome: Answer): void => {
      if (isAnswered) return
      isAnswered = true
      if ('failed' in outcome) callback(outcome.failed)
      else callback(null, outcome.response)
    }
    call.on('data', (message: AppendReq) => {
      const options = message.getOptions()
      if (options !== undefined) proposal ??= openProposal({ ...targetOf(options), deadlineMs: deadlineOf(call) })
      const proposed = message.getProposedMessage()
      const refused = proposed && proposal?.add(proposedOf(proposed))
      if (refused !== undefined) answer({ failed: refused.failure })
    })
    call.on('end', () => {
      if (!isAnswered) void executeAppend(writer, proposal).then(answer)
    })
    // The client disconnected before it had sent everything, so no response is possible.
    call.on('error', () => undefined)
  }

type Answer = { readonly response: AppendResp } | { readonly failed: Failure }

const executeAppend = async (writer: Writer, proposal: Proposal | undefined): Promise<Answer> => {
  const finished = proposal?.finish()
  if (finished === undefined) return { failed: invalidArgument('The first message must hold the options.') }
  if ('refused' in finished) return { failed: finished.refused.failure }
  const { stream, expected } = finished.request
  return answerOf(stream, expected, await writer.write(finished.request))
}

type Options = Pick<
  AppendReq.Options,
  'getStreamIdentifier' | 'hasRevision' | 'getRevision' | 'hasNoStream' | 'hasStreamExists'
>

/** Append, Delete and Tombstone encode the expected revision in the same way. */
export const targetOf = (options: Options): { stream: string; expected: Expected } => ({
  stream: streamName(options.getStreamIdentifier()),
  expected: options.hasRevision()
    ? BigInt(options.getRevision())
    : options.hasNoStream()
      ? 'no_stream'
      : options.hasStreamExists()
        ? 'stream_exists'
        : 'any',
})

const answerOf = (stream: string, expected: Expected, written: Written): Answer => {
  if (written.kind === 'written') return { response: new streams.AppendResp().setSuccess(successOf(written)) }
  if (written.kind === 'wrong_version')
    return { response: new streams.AppendResp().setWrongExpectedVersion(conflictOf(expected, written.actual)) }
  return { failed: notWritten(stream, written) }
}

const successOf = ({ revision, position }: Extract<Written, { kind: 'written' }>): AppendResp.Success => {
  const success = new streams.AppendResp.Success()
  if (revision === NO_REVISION) success.setNoStream(new shared.Empty())
  else success.setCurrentRevision(revision.toString())
  if (position === undefined) return success.setNoPosition(new shared.Empty())
  const at = new streams.AppendResp.Position()
  at.setCommitPosition(position.toString())
  at.setPreparePosition(position.toString())
  return success.setPosition(at)
}

const conflictOf = (expected: Expected, actual: bigint): AppendResp.WrongExpectedVersion => {
  const conflict = new streams.AppendResp.WrongExpectedVersion()
  if (actual === NO_REVISION) conflict.setCurrentNoStream(new shared.Empty())
  else conflict.setCurrentRevision(actual.toString())
  if (expected === 'any') return conflict.setExpectedAny(new shared.Empty())
  if (expected === 'no_stream') return conflict.setExpectedNoStream(new shared.Empty())
  if (expected === 'stream_exists') return conflict.setExpectedStreamExists(new shared.Empty())
  return conflict.setExpectedRevision(expected.toString())
}
