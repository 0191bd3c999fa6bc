import { randomUUID } from 'node:crypto'
import { convertToCommandError } from '@eventstore/db-client'
import { unpackToCommandError } from '@eventstore/db-client/dist/streams/appendToStream/unpackError.js'
import { parseUUID } from '@eventstore/db-client/dist/utils/grpcUUID.js'
import shared from '@eventstore/db-client/generated/shared_pb.js'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import type { BatchAppendReq, BatchAppendResp } from '@eventstore/db-client/generated/streams_pb.js'
import empty from 'google-protobuf/google/protobuf/empty_pb.js'
import timestamp from 'google-protobuf/google/protobuf/timestamp_pb.js'
import type { Appended, ExpectedRevision, NewEvent } from '../ports.ts'
import type { AppendCall, Client } from './eventstoredbConnection.ts'
import { CallEnded, isCallError } from './eventstoredbErrors.ts'

/**
 * The store's BatchAppend method: one call carries all appends of a connection, each a message with an id of its own by
 * which the answer is told from the others, in whatever order they come.
 */

export type Append = {
  readonly stream: string
  readonly events: readonly NewEvent[]
  readonly expected: ExpectedRevision
}

type Unanswered = { readonly resolve: (appended: Appended) => void; readonly reject: (error: Error) => void }

/** Far more than a store takes at once. A message beyond what a server reads would end the call, with all that is on it. */
const APPEND_BYTES_MAX = 3 * 1024 * 1024
const MS_PER_SECOND = 1000
const NANOSECONDS_PER_MS = 1_000_000
const JSON_CONTENT = 'application/json'

type Carrier = { readonly unanswered: Map<string, Unanswered>; ended: boolean }
const carriers = new WeakMap<AppendCall, Carrier>()

/** Listens to a call from its first append on. When it ends, whatever is unanswered on it fails with its error. */
const carrierOf = (call: AppendCall): Carrier => {
  const known = carriers.get(call)
  if (known !== undefined) return known
  const carrier: Carrier = { unanswered: new Map(), ended: false }
  carriers.set(call, carrier)
  call.on('data', (answer: BatchAppendResp) => {
    const correlationId = answer.getCorrelationId()
    const id = correlationId === undefined ? '' : parseUUID(correlationId)
    settle(answer, carrier.unanswered.get(id))
    carrier.unanswered.delete(id)
  })
  const fail = (error: Error): void => {
    carrier.ended = true
    for (const { reject } of carrier.unanswered.values()) reject(error)
    carrier.unanswered.clear()
  }
  call.on('error', (error: Error) => fail(isCallError(error) ? convertToCommandError(error) : error))
  call.on('end', () => fail(new CallEnded('unknown')))
  return carrier
}

const settle = (answer: BatchAppendResp, waiting: Unanswered | undefined): void => {
  const refused = answer.getError()
  const success = answer.getSuccess()
  if (refused !== undefined) waiting?.reject(unpackToCommandError(refused, streamIn(answer)))
  else if (success !== undefined)
    waiting?.resolve({
      ok: true,
      revision: BigInt(success.getCurrentRevision()),
      position: BigInt(success.getPosition()?.getCommitPosition() ?? '0'),
    })
}

const streamIn = (answer: BatchAppendResp): string =>
  Buffer.from(answer.getStreamIdentifier()?.getStreamName_asU8() ?? []).toString('utf8')

/** Rejects with the client's own errors, a wrong expected revision among them. `untilMs`: milliseconds since 1970. */
export const batchAppend = async (client: Client, append: Append, untilMs: number): Promise<Appended> => {
  const id = randomUUID()
  const message = messageOf(id, append, untilMs)
  const call = await client.appendCall()
  const carrier = carrierOf(call)
  if (carrier.ended) throw new CallEnded('none')
  return new Promise((resolve, reject) => {
    carrier.unanswered.set(id, { resolve, reject })
    call.write(message)
  })
}

const messageOf = (id: string, { stream, events, expected }: Append, untilMs: number): BatchAppendReq => {
  const options = new streams.BatchAppendReq.Options()
  const identifier = new shared.StreamIdentifier()
  identifier.setStreamName(Buffer.from(stream, 'utf8'))
  options.setStreamIdentifier(identifier).setDeadline(timestampOf(untilMs))
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

const timestampOf = (epochMs: number) => {
  const seconds = Math.floor(epochMs / MS_PER_SECOND)
  const result = new timestamp.Timestamp()
  result.setSeconds(seconds)
  result.setNanos(Math.floor((epochMs - seconds * MS_PER_SECOND) * NANOSECONDS_PER_MS))
  return result
}

const proposedMessage = ({ id, type, data, metadata }: NewEvent): BatchAppendReq.ProposedMessage => {
  const message = new streams.BatchAppendReq.ProposedMessage()
  message.getMetadataMap().set('type', type).set('content-type', JSON_CONTENT)
  return message
    .setId(new shared.UUID().setString(id))
    .setData(Buffer.from(JSON.stringify(data)))
    .setCustomMetadata(Buffer.from(JSON.stringify(metadata)))
}
