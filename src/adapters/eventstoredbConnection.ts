import { setTimeout as sleep } from 'node:timers/promises'
import { EventStoreDBClient } from '@eventstore/db-client'
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js'

const RENEWAL_MS = 1000
const DISPOSE_MS = 500

export type Connection = {
  readonly client: EventStoreDBClient
  /** Gives up a client that does not answer: the next call gets a new one, on a connection of its own. */
  renew(broken: EventStoreDBClient): void
  close(): Promise<void>
}

/**
 * The client heals by itself when a connection breaks, and pings every 10 s, but it waits for a hung one: whoever loses
 * patience renews it. Not more often than once a second, because that also tears the calls of everybody else.
 */
export const openConnection = (connectionString: string): Connection => {
  let client = EventStoreDBClient.connectionString(connectionString)
  let renewedAtMs = 0
  return {
    get client() {
      return client
    },
    renew: broken => {
      if (broken !== client || Date.now() - renewedAtMs < RENEWAL_MS) return
      renewedAtMs = Date.now()
      client = EventStoreDBClient.connectionString(connectionString)
      void dispose(broken)
    },
    close: () => dispose(client),
  }
}

/** The library waits for the end of every call, and some that were torn never end. */
const dispose = async (client: EventStoreDBClient): Promise<void> => {
  const enough = new AbortController()
  const late = sleep(DISPOSE_MS, undefined, { signal: enough.signal }).catch(() => undefined)
  await Promise.race([client.dispose().catch(() => undefined), late])
  enough.abort()
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
