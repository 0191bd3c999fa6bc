import type { Readable } from 'node:stream'
import { convertToCommandError } from '@eventstore/db-client'
import type { ReadReq } from '@eventstore/db-client/generated/streams_pb.js'
import { type ReadOptions, type StoredEvent, Unavailable } from '../../ports.ts'
import { type Answer, answerOf, answerWithBytes, type Decode } from './answers.ts'
import type { Client } from './client.ts'
import type { Connection } from './connection.ts'
import { ResponseTimeout, isCallError, isLost, isNotLeader } from './errors.ts'
import { headRequest, streamRequest } from './messages.ts'
import type { ReadCall } from './readCall.ts'
import { within } from '../../lib/time.ts'

const READ_TIMEOUT_MS = 3000
const readTimeoutMs = (): number => READ_TIMEOUT_MS

/** When another call renews the connection, or a node is not the leader, a read continues elsewhere, so often at most. */
const INTERRUPTIONS_MAX = 2

/** The rest of the read after these events; undefined after the last one. */
const restAfter = (options: ReadOptions, events: readonly StoredEvent[]): ReadOptions | undefined => {
  const { direction, limit } = options
  const last = events.at(-1)
  if (last === undefined) return options
  if (limit === events.length || (direction === 'backwards' && last.revision === 0n)) return undefined
  const from = direction === 'backwards' ? last.revision - 1n : last.revision + 1n
  return { ...options, from, ...(limit === undefined ? {} : { limit: limit - events.length }) }
}

const eventsIn = (answers: readonly Answer[]): StoredEvent[] => {
  const events: StoredEvent[] = []
  for (const answer of answers) if (answer.kind === 'event') events.push(answer.event)
  return events
}

/** The events of one stream; none if it does not exist. Leaving early cancels the call. */
export const readStream = (
  connection: Connection,
  stream: string,
  options: ReadOptions,
): AsyncIterableIterator<StoredEvent> => oneByOne(newEvents(connection, stream, options))

/** Whether the stream has no events from this revision on; false if the connection was renewed before that was known. */
const isKnownToEnd = async (connection: Connection, stream: string, from: bigint): Promise<boolean> => {
  const { client, ends } = connection
  try {
    return await ends.endsBefore(stream, from, () => head(connection))
  } catch (error) {
    // The renewal ended the read that all share, also for a caller whose own read would succeed on the new connection.
    if (connection.client !== client) return false
    throw error
  }
}

/** The same in arrays. A stream that is read from a revision on, and has not grown beyond it, needs no call of its own. */
async function* newEvents(
  connection: Connection,
  stream: string,
  options: ReadOptions,
): AsyncGenerator<readonly StoredEvent[]> {
  const { from = 0n, direction, limit, signal } = options
  const { ends } = connection
  if (direction === 'backwards' || limit !== undefined || signal !== undefined)
    return yield* readArrays(connection, stream, options)
  if (from > 0n && (await isKnownToEnd(connection, stream, from))) return
  let next = from
  let asOf = ends.newest()
  for await (const events of readArrays(connection, stream, options)) {
    const last = events.at(-1)
    if (last !== undefined) {
      next = last.revision + 1n
      if (last.position > asOf) asOf = last.position
    }
    yield events
  }
  ends.readToEnd(stream, next, asOf)
}

async function* readArrays(
  connection: Connection,
  stream: string,
  options: ReadOptions,
): AsyncGenerator<readonly StoredEvent[]> {
  const { limit, signal } = options
  if (limit !== undefined && limit <= 0) return
  signal?.throwIfAborted()
  let rest: ReadOptions | undefined = options
  for (let interruptions = 0; rest !== undefined; interruptions++) {
    const { client } = connection
    try {
      const decode = options.withBytes ? answerWithBytes : answerOf
      const call = await begin(client, { request: streamRequest(stream, rest), decode, timeoutMs: READ_TIMEOUT_MS })
      for await (const answers of received(call, { timeoutMs: readTimeoutMs, signal })) {
        const events = eventsIn(answers)
        rest = restAfter(rest ?? options, events)
        yield events
      }
      return
    } catch (error) {
      signal?.throwIfAborted()
      const wasRenewed = connection.client !== client && isLost(error) && !(error instanceof ResponseTimeout)
      if (!(wasRenewed || isNotLeader(error)) || interruptions === INTERRUPTIONS_MAX)
        throw await readFailure(connection, client, error)
      if (isNotLeader(error)) await client.followLeader()
    }
  }
}

const readFailure = async (connection: Connection, client: Client, error: unknown): Promise<unknown> => {
  if (error instanceof ResponseTimeout) connection.renew(client)
  const refused = await connection.refusalIn(error)
  if (refused !== undefined) return new Unavailable('event store', { effect: 'none', cause: refused })
  return isLost(error) ? new Unavailable('event store', { effect: 'none', cause: error }) : error
}

type Beginning = { readonly request: ReadReq; readonly decode?: Decode; readonly timeoutMs: number }

/** Begins the call. The client first finds the leader, which can take it several times as long as a read may. */
export const begin = (client: Client, { request, decode, timeoutMs }: Beginning): Promise<ReadCall> => {
  const beginning = client.read(request, decode)
  return within(beginning, timeoutMs, () => {
    beginning.then(
      late => late.cancel(),
      () => undefined,
    )
    throw new ResponseTimeout(timeoutMs)
  })
}

/** The newest event of the log, system events included; undefined while there is none. Throws the client's own errors. */
export const newestEvent = async (client: Client, signal?: AbortSignal): Promise<StoredEvent | undefined> => {
  const call = await begin(client, { request: headRequest(), timeoutMs: READ_TIMEOUT_MS })
  let newest: StoredEvent | undefined
  for await (const answers of received(call, { timeoutMs: readTimeoutMs, signal }))
    newest = eventsIn(answers).at(-1) ?? newest
  return newest
}

/** The position of the newest event, system events included. */
export const head = async (connection: Connection): Promise<bigint> => {
  for (let interruptions = 0; ; interruptions++) {
    const { client } = connection
    try {
      return (await newestEvent(client))?.position ?? 0n
    } catch (error) {
      if (!isNotLeader(error) || interruptions === INTERRUPTIONS_MAX) throw await readFailure(connection, client, error)
      await client.followLeader()
    }
  }
}

type Cancellable = Readable & Pick<ReadCall, 'cancel'>
/** `timeoutMs` is called after every answer: a subscription may be silent for longer once it is confirmed. */
type ReceiveOptions = { readonly timeoutMs: () => number; readonly signal?: AbortSignal | undefined }

/** The items of the arrays. Not a generator, because that costs a reader four promises per item instead of one. */
export const oneByOne = <T>(arrays: AsyncGenerator<readonly T[]>): AsyncIterableIterator<T> => {
  let array: readonly T[] = []
  let at = 0
  const nextOfNextArray = async (): Promise<IteratorResult<T>> => {
    do {
      const more = await arrays.next()
      if (more.done) return { done: true, value: undefined }
      array = more.value
      at = 0
    } while (array.length === 0)
    return { done: false, value: array[at++] as T }
  }
  return {
    next: () => (at < array.length ? Promise.resolve({ done: false, value: array[at++] as T }) : nextOfNextArray()),
    return: async () => {
      await arrays.return(undefined)
      return { done: true, value: undefined }
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}

/** The answers of a call until it ends or its reader leaves. Throws ResponseTimeout, and the client's own errors. */
export async function* received(
  call: Cancellable,
  { timeoutMs, signal }: ReceiveOptions,
): AsyncGenerator<readonly Answer[]> {
  let waiting = true
  let limitMs = timeoutMs()
  let timer: NodeJS.Timeout | undefined
  const watch = (): void => {
    limitMs = timeoutMs()
    timer = setTimeout(() => (waiting ? call.destroy(new ResponseTimeout(limitMs)) : watch()), limitMs)
  }
  const abort = (): void => void call.destroy()
  // Errors may come after the reader has left; without a listener they would end the process.
  call.on('error', () => undefined)
  signal?.addEventListener('abort', abort, { once: true })
  watch()
  try {
    for await (const answers of call) {
      waiting = false
      yield answers as readonly Answer[]
      waiting = true
      if (timeoutMs() === limitMs) timer?.refresh()
      else {
        clearTimeout(timer)
        watch()
      }
    }
  } catch (error) {
    throw isCallError(error) ? convertToCommandError(error) : error
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
    if (!call.readableEnded) call.cancel()
  }
}
