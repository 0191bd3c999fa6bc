import { randomUUID } from 'node:crypto'
import { convertToCommandError } from '@eventstore/db-client'
import code from '@eventstore/db-client/generated/code_pb.js'
import { unpackToCommandError } from '@eventstore/db-client/dist/streams/appendToStream/unpackError.js'
import { parseUUID } from '@eventstore/db-client/dist/utils/grpcUUID.js'
import shared from '@eventstore/db-client/generated/shared_pb.js'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import type { BatchAppendReq, BatchAppendResp } from '@eventstore/db-client/generated/streams_pb.js'
import empty from 'google-protobuf/google/protobuf/empty_pb.js'
import type { Appended, ExpectedRevision, NewEvent } from '../../ports.ts'
import type { AppendCall, Client } from './connection.ts'
import { CallEnded, UnknownResponse, isCallError } from './errors.ts'

/**
 * The store's BatchAppend method: one call carries all appends of a connection. Each message has its own correlation
 * id, by which its response is found in any order.
 */

export type Append = {
  readonly stream: string
  readonly events: readonly NewEvent[]
  readonly expected: ExpectedRevision
}

type Unanswered = { readonly resolve: (appended: Appended) => void; readonly reject: (error: Error) => void }

/**
 * Far more than an append of this service, and less than a server accepts: an oversized message would end the call with
 * all appends on it.
 */
const APPEND_BYTES_MAX = 3 * 1024 * 1024
const JSON_CONTENT = 'application/json'

type CallState = { readonly unanswered: Map<string, Unanswered>; ended: boolean }
const callStates = new WeakMap<AppendCall, CallState>()

/**
 * The state of a call, created with its listeners at its first append. When the call ends, its unanswered appends fail
 * with its error.
 */
const callStateOf = (call: AppendCall): CallState => {
  const known = callStates.get(call)
  if (known !== undefined) return known
  const state: CallState = { unanswered: new Map(), ended: false }
  callStates.set(call, state)
  call.on('data', (answer: BatchAppendResp) => {
    const correlationId = answer.getCorrelationId()
    const id = correlationId === undefined ? '' : parseUUID(correlationId)
    complete(answer, state.unanswered.get(id))
    state.unanswered.delete(id)
  })
  const fail = (error: Error): void => {
    state.ended = true
    // The client reuses the call until both of its directions have ended.
    call.end()
    for (const { reject } of state.unanswered.values()) reject(error)
    state.unanswered.clear()
  }
  call.on('error', (error: Error) => fail(isCallError(error) ? convertToCommandError(error) : error))
  for (const end of ['end', 'close']) call.on(end, () => fail(new CallEnded('unknown')))
  return state
}

const complete = (answer: BatchAppendResp, waiting: Unanswered | undefined): void => {
  const success = answer.getSuccess()
  if (success === undefined) waiting?.reject(refusalIn(answer))
  else
    waiting?.resolve({
      ok: true,
      revision: BigInt(success.getCurrentRevision()),
      position: BigInt(success.getPosition()?.getCommitPosition() ?? '0'),
    })
}

/**
 * The client's error for the reason in the response. A response without success or reason is an error too, so that its
 * append is completed.
 */
const refusalIn = (answer: BatchAppendResp): Error => {
  const refused = answer.getError()
  if (refused === undefined) return new UnknownResponse('neither error nor success')
  if (refused.getCode() === code.Code.UNAVAILABLE || refused.getDetails() === undefined)
    return new UnknownResponse(refused.getMessage())
  return unpackToCommandError(refused, streamIn(answer))
}

const streamIn = (answer: BatchAppendResp): string =>
  Buffer.from(answer.getStreamIdentifier()?.getStreamName_asU8() ?? []).toString('utf8')

/** The progress of an append. After `givenUp` it is not sent any more. */
export type Sending = { readonly givenUp: AbortSignal; sent: boolean }

/** Rejects with the client's own errors, such as a wrong expected revision. */
export const batchAppend = async (client: Client, append: Append, sending: Sending): Promise<Appended> => {
  const id = randomUUID()
  const message = messageOf(id, append)
  const call = await client.appendCall()
  const { unanswered, ended } = callStateOf(call)
  if (ended || sending.givenUp.aborted) throw new CallEnded('none')
  return new Promise((resolve, reject) => {
    unanswered.set(id, { resolve, reject })
    sending.givenUp.addEventListener('abort', () => unanswered.delete(id), { once: true })
    sending.sent = true
    call.write(message)
  })
}

/**
 * The message has no deadline: it would be a time of this machine's clock that the store compares with its own, so that
 * clocks four seconds apart would fail every append.
 */
const messageOf = (id: string, { stream, events, expected }: Append): BatchAppendReq => {
  const options = new streams.BatchAppendReq.Options()
  const identifier = new shared.StreamIdentifier()
  identifier.setStreamName(Buffer.from(stream, 'utf8'))
  options.setStreamIdentifier(identifier)
  if (expected === 'no_stream') options.setNoStream(new empty.Empty())
  else options.setStreamPosition(expected.toString())
  const proposed = events.map(proposedMessage)
  const bytes = proposed.reduce((sum, event) => sum + event.getData_asU8().length, 0)
  if (bytes > APPEND_BYTES_MAX) throw new RangeError(`An append of ${bytes} bytes to ${stream} is too large.`)
  return new streams.BatchAppendReq()
    .setCorrelationId(new shared.UUID().setString(id))
    .setOptions(options)
    .setProposedMessagesList(proposed)
    .setIsFinal(true)
}

const proposedMessage = ({ id, type, data, metadata }: NewEvent): BatchAppendReq.ProposedMessage => {
  const message = new streams.BatchAppendReq.ProposedMessage()
  message.getMetadataMap().set('type', type).set('content-type', JSON_CONTENT)
  return message
    .setId(new shared.UUID().setString(id))
    .setData(Buffer.from(JSON.stringify(data)))
    .setCustomMetadata(Buffer.from(JSON.stringify(metadata)))
}
