import { setTimeout as sleep } from 'node:timers/promises'
import { NO_STREAM, jsonEvent } from '@eventstore/db-client'
import type { EventStoreDBClient, JSONEventData } from '@eventstore/db-client'
import { type Appended, type EventStore, type ExpectedRevision, type NewEvent, Unavailable } from '../ports.ts'
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
    append: (stream, events, expected) =>
      append(connection, { stream, events, expected, deadlineMs: appendDeadlineMs }),
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

type Append = {
  readonly stream: string
  readonly events: readonly NewEvent[]
  readonly expected: ExpectedRevision
  readonly deadlineMs: number
}

/**
 * A torn append is sent once more with the same ids: the store recognises what it has already, so the second answer is
 * the answer to the first. What is still open at the deadline is reported as unknown.
 */
const append = async (connection: Connection, asked: Append): Promise<Appended> => {
  const givenUpAtMs = Date.now() + asked.deadlineMs
  let mayHaveBeenSent = false
  for (let attempt = 1; ; attempt += 1) {
    const { client } = connection
    try {
      return await appendOnce(client, asked, Math.max(givenUpAtMs - Date.now(), 1))
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

const appendOnce = async (
  client: EventStoreDBClient,
  { stream, events, expected }: Append,
  withinMs: number,
): Promise<Appended> => {
  const proposed = events.map(({ id, type, data, metadata }) =>
    jsonEvent({ id, type, data: data as JSONEventData, metadata }),
  )
  const sent = client.appendToStream(stream, proposed, {
    expectedRevision: expected === 'no_stream' ? NO_STREAM : expected,
    deadline: withinMs,
  })
  const { nextExpectedRevision, position } = await within(sent, withinMs)
  return { ok: true, revision: nextExpectedRevision, position: position?.commit ?? 0n }
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
