/** An event store whose gRPC messages are decided by the test. */

import { randomUUID } from 'node:crypto'
import {
  Metadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js'
import gossip from '@eventstore/db-client/generated/gossip_pb.js'
import gossipGrpc from '@eventstore/db-client/generated/gossip_grpc_pb.js'
import shared from '@eventstore/db-client/generated/shared_pb.js'
import statusPb from '@eventstore/db-client/generated/status_pb.js'
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import type { BatchAppendReq, BatchAppendResp, ReadReq, ReadResp } from '@eventstore/db-client/generated/streams_pb.js'
import any from 'google-protobuf/google/protobuf/any_pb.js'
import empty from 'google-protobuf/google/protobuf/empty_pb.js'
import { append } from '../../src/embedded/eventstore/protocol/append.ts'
import { openStreams } from '../../src/embedded/eventstore/streams.ts'
import { openTail } from '../../src/embedded/eventstore/tail.ts'
import type { WriteRequest, Written } from '../../src/embedded/eventstore/writeRequest.ts'

export type AppendCall = ServerDuplexStream<BatchAppendReq, BatchAppendResp>
export type ReadCall = ServerWritableStream<ReadReq, ReadResp>

export type Script = {
  /** Called for every append with the call that it came on. */
  append: (message: BatchAppendReq, call: AppendCall) => void
  read: (call: ReadCall) => void
  /** The port of the leader that the store's gossip names; undefined while there is none. */
  leaderPort: number | undefined
  /** Whether its gossip is never answered. */
  isGossipSilent: boolean
}

export type ScriptedStore = {
  readonly address: string
  /** Of a cluster that is found by the gossip of this store. */
  readonly clusterAddress: string
  readonly script: Script
  stop(): void
}

const clusterOf = ({ leaderPort }: Script) => {
  const cluster = new gossip.ClusterInfo()
  if (leaderPort === undefined) return cluster
  const { LEADER } = gossip.MemberInfo.VNodeState
  const member = new gossip.MemberInfo().setInstanceId(new shared.UUID().setString(randomUUID()))
  const endPoint = new gossip.EndPoint().setAddress('127.0.0.1').setPort(leaderPort)
  cluster.addMembers(member.setState(LEADER).setIsAlive(true).setHttpEndPoint(endPoint))
  return cluster
}

const bind = (server: Server): Promise<number> =>
  new Promise((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  )

/** Starts a store that responds to no append, and to each read with an empty stream, unless the script does. */
export const startScriptedStore = async (): Promise<ScriptedStore> => {
  const script: Script = {
    append: () => undefined,
    read: call => call.end(),
    leaderPort: undefined,
    isGossipSilent: false,
  }
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
  server.addService(gossipGrpc.GossipService, {
    read: (_: ServerUnaryCall<unknown, unknown>, answer: sendUnaryData<unknown>) => {
      if (!script.isGossipSilent) answer(null, clusterOf(script))
    },
  })
  const port = await bind(server)
  return {
    address: `esdb://127.0.0.1:${port}?tls=false`,
    clusterAddress: `esdb+discover://127.0.0.1:${port}?tls=false&maxDiscoverAttempts=2&discoveryInterval=10`,
    script,
    stop: () => server.forceShutdown(),
  }
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

/** Ends the call as a node does that is not the leader. */
export const refuseAsFollower = (call: AppendCall | ReadCall, leaderPort: number): void => {
  const metadata = new Metadata()
  metadata.set('exception', 'not-leader')
  metadata.set('leader-endpoint-host', '127.0.0.1')
  metadata.set('leader-endpoint-port', String(leaderPort))
  call.emit('error', { code: status.NOT_FOUND, details: 'Leader info available', metadata })
}

/** Whether the call subscribes; other reads end by themselves. */
export const isSubscription = (call: ReadCall): boolean => call.request.getOptions()?.hasSubscription() === true

type EventFields = { readonly id?: string; readonly stream?: string; readonly revision?: number }

/** The messages of a read or a subscription. */
export const reading = {
  confirmed: () =>
    new streams.ReadResp().setConfirmation(new streams.ReadResp.SubscriptionConfirmation().setSubscriptionId('1')),
  caughtUp: () => new streams.ReadResp().setCaughtUp(new streams.ReadResp.CaughtUp()),
  checkpoint: (position: bigint) =>
    new streams.ReadResp().setCheckpoint(
      new streams.ReadResp.Checkpoint().setCommitPosition(position.toString()).setPreparePosition('0'),
    ),
  event: (position: bigint, { id = randomUUID(), stream = 's-1', revision = 0 }: EventFields = {}) => {
    const recorded = new streams.ReadResp.ReadEvent.RecordedEvent()
      .setId(new shared.UUID().setString(id))
      .setStreamIdentifier(new shared.StreamIdentifier().setStreamName(Buffer.from(stream)))
      .setStreamRevision(revision.toString())
      .setCommitPosition(position.toString())
      .setPreparePosition(position.toString())
    return new streams.ReadResp().setEvent(new streams.ReadResp.ReadEvent().setEvent(recorded))
  },
}

/** Responds to a read of a stream with events of these ids, from the first revision. */
export const sendEvents = (call: ReadCall, ids: readonly string[]): void => {
  for (const [revision, id] of ids.entries()) call.write(reading.event(BigInt(1000 + revision), { id, revision }))
  call.end()
}

/** A store without BatchAppend, as those before 21.6 are. */
export const startOlderStore = async (write: (request: WriteRequest) => Promise<Written>) => {
  const server = new Server()
  const writer = { tail: openTail(), streams: openStreams(), write, close: () => Promise.resolve() }
  server.addService({ append: streamsGrpc.StreamsService.append }, { append: append(writer) })
  const port = await bind(server)
  return { port, address: `esdb://127.0.0.1:${port}?tls=false`, stop: () => server.forceShutdown() }
}
