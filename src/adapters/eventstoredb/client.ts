import { EventStoreDBClient, jsonEvent } from '@eventstore/db-client'
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js'
import type { ReadReq } from '@eventstore/db-client/generated/streams_pb.js'
import type { ClientReadableStream } from '@grpc/grpc-js'
import type { Appended } from '../../ports.ts'
import { type Answer, answerOf, type Decode } from './answers.ts'
import { AppendCall, type ClientCall, type Sending } from './appendCall.ts'
import { type Append, type AppendAnswer, appendAnswerOf } from './appendMessages.ts'
import { AppendStream } from './appendStream.ts'
import { CallEnded, isUnimplemented } from './errors.ts'
import { ReadCall } from './readCall.ts'
import { type Session, appendSessionOf, forgetAppendSession, forgetSessions, sessionOf } from './sessions.ts'

/** The official client, with its two most frequent methods replaced by calls of our own. */

type Grpc = InstanceType<typeof streamsGrpc.StreamsClient>
/** A read call that yields its answers in arrays. */
export type Reading = ReadCall | ClientReadableStream<readonly Answer[]>

const ENDLESS = { deadline: Number.POSITIVE_INFINITY }
/**
 * A follower may lag, and a node that was the leader keeps its connections: both would answer from the past. They refuse
 * such a call, and name the leader.
 */
const OF_LEADER = { requiresLeader: true }

type CallArguments = ReturnType<Client['callArguments']>

type Request = { readonly request: ReadReq; readonly decode: Decode }

/** Makes the call as the client's own method does, except for the decoding of its answers. */
const openRead = (grpc: Grpc, { request, decode }: Request, [metadata, options]: CallArguments): Reading => {
  const { path, requestSerialize } = streamsGrpc.StreamsService.read
  const decoded = (bytes: Buffer): readonly Answer[] => [decode(bytes)]
  return grpc.makeServerStreamRequest(path, requestSerialize, decoded, request, metadata, options)
}

/** Makes the call as the client's own method does, except for the encoding of its messages. */
const openAppends = (grpc: Grpc, [metadata, options]: CallArguments): ClientCall => {
  const encoded = (message: Buffer): Buffer => message
  const decode = (bytes: Buffer): readonly AppendAnswer[] => [appendAnswerOf(bytes)]
  return grpc.makeBidiStreamRequest(streamsGrpc.StreamsService.batchAppend.path, encoded, decode, metadata, options)
}

/** Makes the call without the client (readCall.ts). Undefined when the client has no session that accepts the request. */
const openOnSession = (connectionName: string, { request, decode }: Request): Reading | undefined => {
  const session = sessionOf(connectionName)
  try {
    return session && new ReadCall(session, request.serializeBinary(), decode)
  } catch {
    return undefined
  }
}

/**
 * A second append call takes the place of a read or a subscription on a connection with fewer calls at a time. Those
 * beyond the limit wait in Node for the end of another one.
 */
const CALLS_AT_A_TIME_MIN = 16

const admitsFewCalls = ({ http2 }: Session): boolean =>
  (http2.remoteSettings.maxConcurrentStreams ?? CALLS_AT_A_TIME_MIN) < CALLS_AT_A_TIME_MIN

/** The calls that carry the appends of one connection. */
type AppendCalls = { readonly grpc: Grpc; readonly byLibrary: AppendCall; onSession: AppendCall | undefined }
const appendCalls = new WeakMap<ClientCall, AppendCalls>()

/**
 * The library's calls for appends. When one ends, the client deletes the call that is there, also if it is another one
 * by then; nobody would end that, so its connection would stay open.
 */
class LibraryCalls extends WeakMap<Grpc, ClientCall | Promise<ClientCall>> {
  override delete(grpc: Grpc): boolean {
    const call = this.get(grpc) as ClientCall | undefined
    const isInUse = call !== undefined && appendCalls.get(call)?.byLibrary.isOpen() === true
    return !isInUse && super.delete(grpc)
  }
}
const libraryCalls = new LibraryCalls()

/**
 * The official client, which discovers the node, opens the connection and reconnects. Its two most frequent methods are
 * replaced by direct calls of the protocol. Its read resets the call when a stream does not exist, and an HTTP/2 server
 * that receives a thousand resets takes its client for an attacker and closes the connection with every append in
 * flight. Its append keeps the unanswered appends of all clients in one table, which the end of any connection clears,
 * and throws an uncatchable error when a response comes after that. Both methods cost twice as much.
 */
export class Client extends EventStoreDBClient {
  ready = Promise.resolve()
  private lacksBatchAppend?: boolean

  async read(request: ReadReq, decode = answerOf): Promise<Reading> {
    await this.ready
    const call = { request, decode }
    const open = (grpc: Grpc): Reading =>
      openOnSession(this.connectionName, call) ?? openRead(grpc, call, this.callArguments(OF_LEADER, ENDLESS))
    return this.GRPCStreamCreator(streamsGrpc.StreamsClient, 'read', open)()
  }

  /** After a call that a node has refused because it is not the leader: resolves when the next call is made at the leader. */
  async followLeader(): Promise<void> {
    forgetSessions(this.connectionName)
    // The client learns of the refusal in this turn of the event loop.
    await new Promise(resolve => setImmediate(resolve))
  }

  /** Rejects with the client's own errors, such as a wrong expected revision. */
  async append(append: Append, sending: Sending): Promise<Appended> {
    if (this.lacksBatchAppend === true) this.lacksBatchAppend = !(await this.supportsBatchAppend())
    if (this.lacksBatchAppend === true) return this.appendAlone(append, sending)
    try {
      const call = await this.appendCall()
      return await call.append(append, sending)
    } catch (error) {
      if (!isUnimplemented(error) || (await this.supportsBatchAppend())) throw error
      this.lacksBatchAppend = true
      return this.appendAlone(append, sending)
    }
  }

  /** By the methods that the server names. A proxy may respond as if it had none while there is no server behind it. */
  private supportsBatchAppend(): Promise<boolean> {
    return this.supports(streamsGrpc.StreamsService.batchAppend)
  }

  /** A call for this append alone, for servers older than BatchAppend (21.6). */
  private async appendAlone({ stream, events, expected }: Append, sending: Sending): Promise<Appended> {
    sending.sent = true
    const options = { ...OF_LEADER, expectedRevision: expected }
    const appended = await this.appendToStream(stream, events.map(jsonEvent), options)
    return { ok: true, revision: appended.nextExpectedRevision, position: appended.position?.commit ?? 0n }
  }

  /**
   * The call that carries all appends of this connection: first one of the gRPC library, which connects; then one on its
   * session. The first one stays open, so the library continues to ping the store.
   */
  private async appendCall(): Promise<AppendCall> {
    await this.ready
    const open = (grpc: Grpc): ClientCall => {
      forgetAppendSession(this.connectionName)
      const opened = openAppends(grpc, this.callArguments(OF_LEADER, ENDLESS))
      const byLibrary = new AppendCall(opened, () => appendCalls.get(opened)?.onSession?.end())
      appendCalls.set(opened, { grpc, byLibrary, onSession: undefined })
      return opened
    }
    const libraryCall = await this.GRPCStreamCreator(streamsGrpc.StreamsClient, 'batchAppend', open, libraryCalls)()
    const calls = appendCalls.get(libraryCall)
    if (calls === undefined) throw new CallEnded('none')
    calls.onSession ??= this.appendCallOnSession(calls.byLibrary)
    if (calls.onSession === undefined) return calls.byLibrary
    if (calls.onSession.isOpen()) return calls.onSession
    // The store closes the connection, or has ended the call: the library opens another one.
    calls.onSession.end()
    calls.byLibrary.end()
    libraryCalls.delete(calls.grpc)
    return this.appendCall()
  }

  /** The library's call ends with it: the library opens the next one perhaps on another connection. */
  private appendCallOnSession(byLibrary: AppendCall): AppendCall | undefined {
    const session = appendSessionOf(this.connectionName)
    if (session === undefined || admitsFewCalls(session)) return undefined
    try {
      const stream = new AppendStream(session)
      // The client learns of its failure, such as that of a store that is not the leader, and ends it when it is disposed.
      void this.GRPCStreamCreator(streamsGrpc.StreamsClient, 'batchAppend', () => stream)().catch(() => undefined)
      return new AppendCall(stream, () => byLibrary.end())
    } catch {
      return undefined
    }
  }
}
