/** An event store whose gRPC messages are decided by the test. */

import { Server, ServerCredentials, type ServerDuplexStream, type ServerWritableStream } from '@grpc/grpc-js'
import shared from '@eventstore/db-client/generated/shared_pb.js'
import statusPb from '@eventstore/db-client/generated/status_pb.js'
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import type { BatchAppendReq, BatchAppendResp, ReadReq, ReadResp } from '@eventstore/db-client/generated/streams_pb.js'
import any from 'google-protobuf/google/protobuf/any_pb.js'
import empty from 'google-protobuf/google/protobuf/empty_pb.js'

export type AppendCall = ServerDuplexStream<BatchAppendReq, BatchAppendResp>
export type ReadCall = ServerWritableStream<ReadReq, ReadResp>

export type Script = {
  /** Called for every append with the call that it came on. */
  append: (message: BatchAppendReq, call: AppendCall) => void
  read: (call: ReadCall) => void
}

export type ScriptedStore = { readonly address: string; readonly script: Script; stop(): void }

/** Starts a store that responds to no append, and to each read with an empty stream, unless the script does. */
export const startScriptedStore = async (): Promise<ScriptedStore> => {
  const script: Script = { append: () => undefined, read: call => call.end() }
  const server = new Server()
  const unused = () => undefined
  server.addService(streamsGrpc.StreamsService, {
    append: unused,
    delete: unused,
    tombstone: unused,
    read: (call: ReadCall) => script.read(call),
    batchAppend: (call: AppendCall) => {
      call.on('data', (message: BatchAppendReq) => script.append(message, call))
      call.on('error', () => undefined)
    },
  })
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  )
  return { address: `esdb://127.0.0.1:${port}?tls=false`, script, stop: () => server.forceShutdown() }
}

export const answerTo = (message: BatchAppendReq): BatchAppendResp =>
  new streams.BatchAppendResp()
    .setCorrelationId(message.getCorrelationId())
    .setStreamIdentifier(message.getOptions()?.getStreamIdentifier())

export const success = (message: BatchAppendReq, revision: bigint, position: bigint): BatchAppendResp => {
  const at = new shared.AllStreamPosition()
  at.setCommitPosition(position.toString()).setPreparePosition(position.toString())
  const appended = new streams.BatchAppendResp.Success().setCurrentRevision(revision.toString()).setPosition(at)
  return answerTo(message).setSuccess(appended)
}

export type Refusal = {
  readonly code?: number
  readonly message?: string
  readonly detail?: string
  readonly bytes?: Uint8Array
}

/** A gRPC error without details, unless given. */
export const refusal = (
  message: BatchAppendReq,
  { code = 2, message: text = '', detail, bytes }: Refusal,
): BatchAppendResp => {
  const error = new statusPb.Status()
  error.setCode(code)
  error.setMessage(text)
  if (detail !== undefined) {
    const packed = new any.Any()
    packed.pack(bytes ?? new empty.Empty().serializeBinary(), detail)
    error.setDetails(packed)
  }
  return answerTo(message).setError(error)
}

export const wrongVersion = (message: BatchAppendReq, actual: bigint): BatchAppendResp => {
  const conflict = new shared.WrongExpectedVersion().setCurrentStreamRevision(actual.toString())
  conflict.setExpectedNoStream(new empty.Empty())
  const detail = 'event_store.client.WrongExpectedVersion'
  return refusal(message, { code: 9, detail, bytes: conflict.serializeBinary() })
}

/** Responds to a read of a stream with events of these ids, from the first revision. */
export const sendEvents = (call: ReadCall, ids: readonly string[]): void => {
  const identifier = new shared.StreamIdentifier().setStreamName(Buffer.from('s-1'))
  for (const [revision, id] of ids.entries()) {
    const event = new streams.ReadResp.ReadEvent.RecordedEvent()
      .setId(new shared.UUID().setString(id))
      .setStreamIdentifier(identifier)
      .setStreamRevision(revision.toString())
      .setCommitPosition((1000 + revision).toString())
      .setPreparePosition((1000 + revision).toString())
    call.write(new streams.ReadResp().setEvent(new streams.ReadResp.ReadEvent().setEvent(event)))
  }
  call.end()
}
