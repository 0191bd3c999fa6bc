import type { EventStore } from '../../ports.ts'
import { append } from './append.ts'
import { openConnection } from './connection.ts'
import { openLiveSubscription, subscribe } from './subscription.ts'
import { head, readStream } from './read.ts'

/** For tools; the service has one among its time budgets (src/settings/timeBudgets.ts). */
const DEFAULT_APPEND_DEADLINE_MS = 3000

export type EventStoreOptions = {
  /** `esdb://…`, `kurrentdb://…` or `kdb://…`; `esdb+discover://…` and so on for a cluster. */
  readonly connectionString: string
  readonly appendDeadlineMs?: number
}

/** EventStoreDB or the embedded event store, by the official client. Connects with the first call. */
export const openEventStore = ({
  connectionString,
  appendDeadlineMs = DEFAULT_APPEND_DEADLINE_MS,
}: EventStoreOptions): EventStore => {
  const connection = openConnection(connectionString)
  const closing = new AbortController()
  const live = openLiveSubscription(connection, closing.signal)
  return {
    append: async (stream, events, expected) => {
      const appended = await append(connection, { stream, events, expected }, appendDeadlineMs)
      if (appended.ok) connection.ends.appended(stream, appended)
      return appended
    },
    readStream: (stream, options = {}) => readStream(connection, stream, options),
    subscribe: options =>
      subscribe(connection, live, { ...options, signal: AbortSignal.any([options.signal, closing.signal]) }),
    head: () => head(connection),
    close: async () => {
      closing.abort()
      await connection.close()
    },
  }
}
