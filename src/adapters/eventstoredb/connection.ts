import { EventStoreDBClient } from '@eventstore/db-client'
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js'
import type { ReadReq } from '@eventstore/db-client/generated/streams_pb.js'
import type { ClientReadableStream } from '@grpc/grpc-js'
import { type Answer, answerOf } from './answers.ts'
import { ReadCall } from './readCall.ts'
import { destroyReadSession, forgetReadSession, observeReadSessions, readSessionOf } from './readSessions.ts'
import { refusalBehind, type StoreRefused } from './refusals.ts'

/** The connection to the event store: one official client, renewed when it hangs. */

const RENEWAL_MS = 1000

export type Connection = {
  readonly client: Client
  /** Gives up a client that does not answer: the next call gets a new one on a new connection. */
  renew(broken: Client): void
  /** The reason if the store refuses this service; undefined otherwise. */
  refusalIn(error: unknown): Promise<StoreRefused | undefined>
  close(): Promise<void>
}

type Grpc = InstanceType<typeof streamsGrpc.StreamsClient>
/** A read call that yields its answers in arrays. */
export type Reading = ReadCall | ClientReadableStream<readonly Answer[]>
export type AppendCall = ReturnType<Grpc['batchAppend']>

const ENDLESS = { deadline: Number.POSITIVE_INFINITY }
const appendCalls = new WeakMap<Grpc, AppendCall | Promise<AppendCall>>()

type CallArguments = ReturnType<Client['callArguments']>

/** Makes the call as the client's own method does, except for the decoding of its answers. */
const openRead = (grpc: Grpc, request: ReadReq, [metadata, options]: CallArguments): Reading => {
  const { path, requestSerialize } = streamsGrpc.StreamsService.read
  const decode = (bytes: Buffer): readonly Answer[] => [answerOf(bytes)]
  return grpc.makeServerStreamRequest(path, requestSerialize, decode, request, metadata, options)
}

/** Makes the call without the client (readCall.ts). Undefined when the client has no session that accepts the request. */
const openOnSession = (connectionName: string, request: ReadReq): Reading | undefined => {
  const session = readSessionOf(connectionName)
  try {
    return session && new ReadCall(session, request.serializeBinary())
  } catch {
    return undefined
  }
}

/**
 * The official client, which discovers the node, opens the connection and reconnects. Its two most frequent methods are
 * replaced by direct calls of the protocol. Its read resets the call when a stream does not exist, and an HTTP/2 server
 * that receives a thousand resets takes its client for an attacker and closes the connection with every append in
 * flight. Its append keeps the unanswered appends of all clients in one table, which the end of any connection clears,
 * and throws an uncatchable error when a response comes after that. Both methods cost twice as much.
 */
export class Client extends EventStoreDBClient {
  ready = Promise.resolve()

  async read(request: ReadReq): Promise<Reading> {
    await this.ready
    const open = (grpc: Grpc): Reading =>
      openOnSession(this.connectionName, request) ?? openRead(grpc, request, this.callArguments({}, ENDLESS))
    return this.GRPCStreamCreator(streamsGrpc.StreamsClient, 'read', open)()
  }

  /** The call that carries all appends of this connection. */
  async appendCall(): Promise<AppendCall> {
    await this.ready
    const open = (grpc: Grpc): AppendCall => grpc.batchAppend(...this.callArguments({}, ENDLESS))
    return this.GRPCStreamCreator(streamsGrpc.StreamsClient, 'batchAppend', open, appendCalls)()
  }
}

/** Calls wait for `ready`. The prototype is replaced, because connection strings are parsed into the base class only. */
const openClient = (connectionString: string, ready: Promise<void> = Promise.resolve()): Client => {
  const client: Client = Object.setPrototypeOf(EventStoreDBClient.connectionString(connectionString), Client.prototype)
  client.ready = ready
  return client
}

/**
 * The client reconnects after a broken connection and pings every 10 s, but waits for a hung one. A call that waits too
 * long renews the client, at most once a second, because that also ends all other calls.
 */
export const openConnection = (connectionString: string): Connection => {
  let client = openClient(connectionString)
  const stopObserving = observeReadSessions()
  let renewedAtMs = Number.NEGATIVE_INFINITY
  return {
    get client() {
      return client
    },
    renew: broken => {
      if (broken !== client || performance.now() - renewedAtMs < RENEWAL_MS) return
      renewedAtMs = performance.now()
      client = openClient(connectionString, destroyReadSession(broken.connectionName))
      void broken.dispose().catch(() => undefined)
    },
    refusalIn: error => refusalBehind(connectionString, error),
    close: () => {
      stopObserving()
      forgetReadSession(client.connectionName)
      return client.dispose()
    },
  }
}
