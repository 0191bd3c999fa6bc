import { setTimeout as sleep } from 'node:timers/promises'
import { type Appended, type EventStore, Unavailable } from '../ports.ts'
import { type Append, batchAppend } from './eventstoredbAppend.ts'
import { type Connection, openConnection } from './eventstoredbConnection.ts'
import { Silence, causeOf, isLost, wasNeverSent } from './eventstoredbErrors.ts'
import { subscribe } from './eventstoredbFeed.ts'
import { head, readStream } from './eventstoredbRead.ts'

const APPEND_DEADLINE_MS = 3000
const RESEND_AFTER_MS = 50
const APPEND_ATTEMPTS_MAX = 2

export type EventStoreOptions = {
  /** `esdb://…`; `esdb+discover://…` for a cluster. */
  readonly connectionString: string
  readonly appendDeadlineMs?: number
}

/** EventStoreDB, or the embedded node, through the official client. Connects with the first call. */
export const openEventStore = ({
  connectionString,
  appendDeadlineMs = APPEND_DEADLINE_MS,
}: EventStoreOptions): EventStore => {
  const connection = openConnection(connectionString)
  const closing = new AbortController()
  return {
    append: (stream, events, expected) => append(connection, { stream, events, expected }, appendDeadlineMs),
    readStream: (stream, options = {}) => readStream(connection, stream, options),
    subscribe: options =>
      subscribe(connection, { ...options, signal: AbortSignal.any([options.signal, closing.signal]) }),
    head: () => head(connection),
    close: async () => {
      closing.abort()
      await connection.close()
    },
  }
}

/**
 * A torn append is sent once more with the same ids: the store recognises what it has already, so the second answer is
 * the answer to the first. What is still open at the deadline is reported as unknown.
 */
const append = async (connection: Connection, asked: Append, deadlineMs: number): Promise<Appended> => {
  const givenUpAtMs = Date.now() + deadlineMs
  let mayHaveBeenSent = false
  for (let attempt = 1; ; attempt += 1) {
    const { client } = connection
    try {
      const withinMs = Math.max(givenUpAtMs - Date.now(), 1)
      return await within(batchAppend(client, asked, Date.now() + withinMs), withinMs)
    } catch (error) {
      const conflict = conflictIn(error)
      if (conflict !== undefined) return conflict
      if (error instanceof Silence) connection.renew(client)
      if (!isLost(error)) throw error
      const never = wasNeverSent(error)
      mayHaveBeenSent ||= !never
      if (never || attempt === APPEND_ATTEMPTS_MAX || Date.now() + RESEND_AFTER_MS >= givenUpAtMs)
        throw new Unavailable('event store', mayHaveBeenSent ? 'unknown' : 'none', error)
      await sleep(RESEND_AFTER_MS)
    }
  }
}

/** The client itself would wait for ever: the deadline that it sends is for the server to keep. */
const within = <T>(promise: Promise<T>, limitMs: number): Promise<T> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Silence(limitMs)), limitMs)
    promise.then(resolve, reject).finally(() => clearTimeout(timer))
  })

const conflictIn = (error: unknown): Appended | undefined => {
  const cause = causeOf(error)
  if (cause?.type !== 'wrong-expected-version') return undefined
  return { ok: false, actual: typeof cause.actualVersion === 'bigint' ? cause.actualVersion : 'no_stream' }
}
