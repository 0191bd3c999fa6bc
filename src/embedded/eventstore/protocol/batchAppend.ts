import type { ServerDuplexStream } from '@grpc/grpc-js'
import type { BatchAppendReq, BatchAppendResp } from '@eventstore/db-client/generated/streams_pb.js'
import type { Writer } from '../writer.ts'
import { type Proposal, type Target, openProposal } from './appendValidation.ts'
import { type BatchRequest, batchTargetOf } from './batchRequest.ts'
import { type Outcome, responseOf } from './batchResponse.ts'
import { proposedOf, uuidText } from './messages.ts'

/** The BatchAppend method: many appends over one call, with correlation ids, answered as they are committed. */

/** Beyond this number of unanswered appends of one client, its further messages stay in the socket. */
const UNANSWERED_MAX = 2000

type Open = {
  readonly correlationId: ReturnType<BatchAppendReq['getCorrelationId']>
  readonly target: Target
  readonly proposal: Proposal
}

/** Long because its functions share the unanswered appends. */
export const batchAppend =
  (writer: Writer) =>
  (call: ServerDuplexStream<BatchRequest, BatchAppendResp>): void => {
    /** Appends whose last message has not come, by their correlation id. */
    const open = new Map<string, Open>()
    let unanswered = 0
    let hasEnded = false

    const endWhenAnswered = (): void => {
      if (hasEnded && unanswered === 0) call.end()
    }
    const finish = async ({ correlationId, target, proposal }: Open): Promise<void> => {
      const outcome = await outcomeOf(writer, target, proposal)
      unanswered -= 1
      if (call.writable) call.write(responseOf(target, outcome).setCorrelationId(correlationId))
      if (call.isPaused() && unanswered < UNANSWERED_MAX) call.resume()
      endWhenAnswered()
    }
    const receive = (request: BatchRequest): void => {
      const { message } = request
      const key = uuidText(message.getCorrelationId()) ?? ''
      const opened = open.get(key) ?? begin(request)
      // The rest of an append that was refused before its last message is ignored, as by the real server.
      if (opened === undefined) return
      let isRefused = false
      for (const event of message.getProposedMessagesList())
        isRefused = opened.proposal.add(proposedOf(event)) !== undefined
      if (!message.getIsFinal() && !isRefused) return void open.set(key, opened)
      open.delete(key)
      unanswered += 1
      if (unanswered >= UNANSWERED_MAX) call.pause()
      void finish(opened)
    }

    call.on('data', receive)
    call.on('error', () => undefined)
    call.on('end', () => {
      hasEnded = true
      endWhenAnswered()
    })
  }

const begin = (request: BatchRequest): Open | undefined => {
  const target = batchTargetOf(request)
  const correlationId = request.message.getCorrelationId()
  return target && { correlationId, target, proposal: openProposal(target) }
}

/** A passed deadline takes precedence over every other reason. */
const outcomeOf = async (writer: Writer, { deadlineMs }: Target, proposal: Proposal): Promise<Outcome> => {
  const finished = proposal.finish()
  if ('request' in finished) return writer.write(finished.request)
  return deadlineMs <= Date.now() ? { kind: 'timeout' } : finished.refused
}
