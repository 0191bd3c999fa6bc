import { convertToCommandError } from '@eventstore/db-client'
import { type ReadOptions, type StoredEvent, Unavailable } from '../../ports.ts'
import type { Answer } from './answers.ts'
import type { Client, Connection, ReadCall } from './connection.ts'
import { Silence, isCallError, isLost } from './errors.ts'
import { headRequest, streamRequest } from './messages.ts'

/** Reads of one stream and of the head, by the store's Read method. */

const READ_SILENCE_MS = 3000
const silenceMs = (): number => READ_SILENCE_MS

/** Another call may renew the connection while this one works; it continues on the next connection so often. */
const TORN_MAX = 2

/** The rest of the read after this event; undefined after the last one. */
const restBehind = (options: ReadOptions, { revision }: StoredEvent): ReadOptions | undefined => {
  const { direction, limit } = options
  if (limit === 1 || (direction === 'backwards' && revision === 0n)) return undefined
  const from = direction === 'backwards' ? revision - 1n : revision + 1n
  return { ...options, from, ...(limit === undefined ? {} : { limit: limit - 1 }) }
}

/** The events of one stream; none if it does not exist. Leaving early cancels the call. */
export async function* readStream(
  connection: Connection,
  stream: string,
  options: ReadOptions,
): AsyncGenerator<StoredEvent> {
  const { limit, signal } = options
  if (limit !== undefined && limit <= 0) return
  signal?.throwIfAborted()
  let rest: ReadOptions | undefined = options
  for (let torn = 0; rest !== undefined; torn++) {
    const { client } = connection
    try {
      for await (const answer of received(await client.read(streamRequest(stream, rest)), { silenceMs, signal })) {
        if (answer.kind !== 'event') continue
        rest = restBehind(rest ?? options, answer.event)
        yield answer.event
      }
      return
    } catch (error) {
      signal?.throwIfAborted()
      const wasTorn = connection.client !== client && isLost(error) && !(error instanceof Silence)
      if (!wasTorn || torn === TORN_MAX) throw await readFailure(connection, client, error)
    }
  }
}

const readFailure = async (connection: Connection, client: Client, error: unknown): Promise<unknown> => {
  if (error instanceof Silence) connection.renew(client)
  const refused = await connection.refusalIn(error)
  if (refused !== undefined) return new Unavailable('event store', 'none', refused)
  return isLost(error) ? new Unavailable('event store', 'none', error) : error
}

/** The position of the newest event, system events included. */
export const head = async (connection: Connection): Promise<bigint> => {
  const { client } = connection
  let position = 0n
  try {
    for await (const answer of received(await client.read(headRequest()), { silenceMs }))
      if (answer.kind === 'event') position = answer.event.position
    return position
  } catch (error) {
    throw await readFailure(connection, client, error)
  }
}

type Patience = { readonly silenceMs: () => number; readonly signal?: AbortSignal | undefined }

/**
 * The answers of a call until it ends, or until the reader leaves, which cancels it. Throws Silence if nothing comes
 * while the reader waits, and the client's own errors.
 */
export async function* received(call: ReadCall, { silenceMs, signal }: Patience): AsyncGenerator<Answer> {
  let waiting = true
  let timer: NodeJS.Timeout | undefined
  const watch = (): void => {
    const limitMs = silenceMs()
    timer = setTimeout(() => (waiting ? call.destroy(new Silence(limitMs)) : watch()), limitMs)
  }
  const abort = (): void => void call.destroy()
  // Errors may come after the reader has left; without a listener they would end the process.
  call.on('error', () => undefined)
  signal?.addEventListener('abort', abort, { once: true })
  watch()
  try {
    for await (const answer of call) {
      waiting = false
      yield answer as Answer
      waiting = true
      timer?.refresh()
    }
  } catch (error) {
    throw isCallError(error) ? convertToCommandError(error) : error
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
    if (!call.readableEnded) call.cancel()
  }
}
