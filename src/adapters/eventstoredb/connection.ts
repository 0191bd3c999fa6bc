import { EventStoreDBClient } from '@eventstore/db-client'
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js'
import type { ReadReq } from '@eventstore/db-client/generated/streams_pb.js'
import { answerOf } from './answers.ts'
import { refusalBehind, type StoreRefused } from './refusals.ts'
import { widenWindows } from './window.ts'

const RENEWAL_MS = 1000

export type Connection = {
  readonly client: Client
  /** Gives up a client that does not answer: the next call gets a new one, on a connection of its own. */
  renew(broken: Client): void
  /** Whether the store refuses to work with this service, and why. */
  refusalIn(error: unknown): Promise<StoreRefused | undefined>
  close(): Promise<void>
}

type Grpc = InstanceType<typeof streamsGrpc.StreamsClient>
export type ReadCall = ReturnType<typeof openRead>
export type AppendCall = ReturnType<Grpc['batchAppend']>

const ENDLESS = { deadline: Number.POSITIVE_INFINITY }
const appendCalls = new WeakMap<Grpc, AppendCall | Promise<AppendCall>>()

type CallArguments = ReturnType<Client['callArguments']>

/** The client's own method, but for how its answers are decoded. */
const openRead = (grpc: Grpc, request: ReadReq, [metadata, options]: CallArguments) => {
  const { path, requestSerialize } = streamsGrpc.StreamsService.read
  return grpc.makeServerStreamRequest(path, requestSerialize, answerOf, request, metadata, options)
}

/**
 * The official client: it finds the node, opens and heals the connection. Its two busiest methods are replaced by what
 * the server itself speaks. Its read resets the call when a stream does not exist, and an HTTP/2 server that sees a
 * thousand resets takes its peer for an attacker and closes the connection, with every append that is under way on it.
 * Its append keeps the unanswered ones of all clients in one table, which the end of any connection empties, and throws
 * where nobody can catch it when an answer comes after that. Both cost twice as much.
 */
export class Client extends EventStoreDBClient {
  read(request: ReadReq): Promise<ReadCall> {
    return this.GRPCStreamCreator(streamsGrpc.StreamsClient, 'read', grpc =>
      openRead(grpc, request, this.callArguments({}, ENDLESS)),
    )()
  }

  /** The one call that carries the appends of this connection. */
  appendCall(): Promise<AppendCall> {
    const open = (grpc: Grpc): AppendCall => grpc.batchAppend(...this.callArguments({}, ENDLESS))
    return this.GRPCStreamCreator(streamsGrpc.StreamsClient, 'batchAppend', open, appendCalls)()
  }
}

// The parser of connection strings makes the base class and nothing else.
const openClient = (connectionString: string): Client =>
  Object.setPrototypeOf(EventStoreDBClient.connectionString(connectionString), Client.prototype)

/**
 * The client heals by itself when a connection breaks, and pings every 10 s, but it waits for a hung one, which is renewed
 * by the call that waits too long. Not more often than once a second, because that also tears all other calls.
 */
export const openConnection = (connectionString: string): Connection => {
  let client = openClient(connectionString)
  const stopWidening = widenWindows()
  let renewedAtMs = Number.NEGATIVE_INFINITY
  return {
    get client() {
      return client
    },
    renew: broken => {
      if (broken !== client || performance.now() - renewedAtMs < RENEWAL_MS) return
      renewedAtMs = performance.now()
      client = openClient(connectionString)
      void broken.dispose().catch(() => undefined)
    },
    refusalIn: error => refusalBehind(connectionString, error),
    close: () => {
      stopWidening()
      return client.dispose()
    },
  }
}
