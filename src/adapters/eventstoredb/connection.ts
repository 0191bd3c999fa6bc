import { StartupError } from '../../lib/startupError.ts'
import { Client } from './client.ts'
import { refusalBehind, type StoreRefused } from './refusals.ts'
import { StreamEnds } from './streamEnds.ts'

const RENEWAL_MS = 1000

export type Connection = {
  readonly client: Client
  readonly ends: StreamEnds
  /** Gives up a client that does not answer: the next call gets a new one on a new connection. */
  renew(broken: Client): void
  /** The reason if the store refuses this service; undefined otherwise. */
  refusalIn(error: unknown): Promise<StoreRefused | undefined>
  close(): Promise<void>
}

/** The library's message has a position alone, and may quote a part of the password. */
const openClient = (connectionString: string): Client => {
  try {
    return new Client(connectionString)
  } catch (error) {
    throw new StartupError(
      'EVENTSTORE_URL is not valid: expected a URL such as esdb://user:password@host:2113?tls=true.',
      error,
    )
  }
}

/**
 * The client reconnects by itself, but waits for a hung connection. A call that waits too long renews the client, at
 * most once a second, because that also ends all other calls.
 */
export const openConnection = (connectionString: string): Connection => {
  let client = openClient(connectionString)
  let renewedAtMs = Number.NEGATIVE_INFINITY
  return {
    get client() {
      return client
    },
    ends: new StreamEnds(),
    renew: broken => {
      if (broken !== client || performance.now() - renewedAtMs < RENEWAL_MS) return
      renewedAtMs = performance.now()
      client = openClient(connectionString)
      void broken.dispose().catch(() => undefined)
    },
    refusalIn: error => refusalBehind(connectionString, error),
    close: () => client.dispose(),
  }
}
