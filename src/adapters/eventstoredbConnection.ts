import { EventStoreDBClient } from '@eventstore/db-client'
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js'
import type { ReadReq, ReadResp } from '@eventstore/db-client/generated/streams_pb.js'
import type { ClientReadableStream } from '@grpc/grpc-js'

const RENEWAL_MS = 1000

export type Connection = {
  readonly client: Client
  /** Gives up a client that does not answer: the next call gets a new one, on a connection of its own. */
  renew(broken: Client): void
  close(): Promise<void>
}

/**
 * The official client, with its reads as the server sends them. Its own read resets the call when a stream does not
 * exist, and an HTTP/2 server that sees a thousand resets takes its peer for an attacker and closes the connection, with
 * every append that is under way on it. It also costs twice as much.
 */
export class Client extends EventStoreDBClient {
  read(request: ReadReq): Promise<ClientReadableStream<ReadResp>> {
    const endless = { deadline: Number.POSITIVE_INFINITY }
    const call = (grpc: InstanceType<typeof streamsGrpc.StreamsClient>) =>
      grpc.read(request, ...this.callArguments({}, endless))
    return this.GRPCStreamCreator(streamsGrpc.StreamsClient, 'read', call)()
  }
}

// The parser of connection strings makes the base class and nothing else.
const openClient = (connectionString: string): Client =>
  Object.setPrototypeOf(EventStoreDBClient.connectionString(connectionString), Client.prototype)

/**
 * The client heals by itself when a connection breaks, and pings every 10 s, but it waits for a hung one: whoever loses
 * patience renews it. Not more often than once a second, because that also tears the calls of everybody else.
 */
export const openConnection = (connectionString: string): Connection => {
  let client = openClient(connectionString)
  let renewedAtMs = 0
  return {
    get client() {
      return client
    },
    renew: broken => {
      if (broken !== client || Date.now() - renewedAtMs < RENEWAL_MS) return
      renewedAtMs = Date.now()
      client = openClient(connectionString)
      void broken.dispose().catch(() => undefined)
    },
    close: () => client.dispose(),
  }
}
type BatchAppend = (typeof streamsGrpc.StreamsClient)['prototype']['batchAppend']
type Listener = (message: unknown) => void

/**
 * All clients of a process keep their unanswered appends in one table, which the client library empties when the
 * connection of any of them breaks. An answer that arrives on another one after that finds its entry gone, and the
 * library's listener throws where nobody can catch it. The append was rejected already, so its answer may be dropped.
 */
const dropAnswersToNobody = (): void => {
  const { prototype } = streamsGrpc.StreamsClient
  // oxlint-disable-next-line typescript/unbound-method -- It is called with the client that it was called on.
  const original: BatchAppend = prototype.batchAppend
  prototype.batchAppend = function (this: typeof prototype, ...args: Parameters<BatchAppend>) {
    const call = original.apply(this, args)
    const on = call.on.bind(call)
    call.on = ((event: string, listener: Listener) =>
      on(event, event === 'data' ? guarded(listener) : listener)) as typeof call.on
    return call
  } as BatchAppend
}

const guarded =
  (listener: Listener): Listener =>
  message => {
    try {
      listener(message)
    } catch (error) {
      if (!(error instanceof TypeError)) throw error
    }
  }

dropAnswersToNobody()
