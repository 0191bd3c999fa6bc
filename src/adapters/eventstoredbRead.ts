import { BACKWARDS, END, FORWARDS, START } from '@eventstore/db-client'
import type { AllStreamResolvedEvent, EventStoreDBClient, ResolvedEvent } from '@eventstore/db-client'
import { type JsonObject, type ReadOptions, type StoredEvent, Unavailable } from '../ports.ts'
import type { Connection } from './eventstoredbConnection.ts'
import { Silence, causeOf, isLost } from './eventstoredbErrors.ts'

const READ_SILENCE_MS = 3000

/** The events of one stream; none when it does not exist. Leaving early cancels the read on the server too. */
export async function* readStream(
  connection: Connection,
  stream: string,
  options: ReadOptions,
): AsyncGenerator<StoredEvent> {
  const { from, direction = 'forwards', limit = Number.MAX_SAFE_INTEGER, signal } = options
  if (limit <= 0) return
  signal?.throwIfAborted()
  const { client } = connection
  const reading = client.readStream(stream, {
    direction: direction === 'forwards' ? FORWARDS : BACKWARDS,
    fromRevision: from ?? (direction === 'forwards' ? START : END),
    maxCount: limit,
  })
  try {
    for await (const { event } of received<ResolvedEvent>(reading, { silenceMs: () => READ_SILENCE_MS, signal }))
      if (event !== undefined) yield storedEvent(event)
  } catch (error) {
    signal?.throwIfAborted()
    if (causeOf(error)?.type === 'stream-not-found') return
    throw readFailure(connection, client, error)
  } finally {
    if (!reading.readableEnded) void reading.cancel().catch(() => undefined)
  }
}

const readFailure = (connection: Connection, client: EventStoreDBClient, error: unknown): unknown => {
  if (error instanceof Silence) connection.renew(client)
  return isLost(error) ? new Unavailable('event store', 'none', error) : error
}

/** The position of the newest event, system events included. */
export const head = async (connection: Connection): Promise<bigint> => {
  const { client } = connection
  const reading = client.readAll({ direction: BACKWARDS, fromPosition: END, maxCount: 1 })
  let position = 0n
  try {
    // Read to its end: the client keeps a stream that is left before that for ever, and waits for it when it closes.
    for await (const { event } of received<AllStreamResolvedEvent>(reading, { silenceMs: () => READ_SILENCE_MS }))
      position = event?.position.commit ?? 0n
    return position
  } catch (error) {
    throw readFailure(connection, client, error)
  } finally {
    if (!reading.readableEnded) void reading.cancel().catch(() => undefined)
  }
}

type Recorded = NonNullable<ResolvedEvent['event']>

export const storedEvent = (event: Recorded): StoredEvent => ({
  id: event.id,
  type: event.type,
  data: event.data as JsonObject,
  metadata: (event.metadata ?? {}) as JsonObject,
  stream: event.streamId,
  revision: event.revision,
  position: event.position?.commit ?? 0n,
  storedAt: event.created.toISOString(),
})

/** What reads and subscriptions of the client have in common. */
type Source = AsyncIterable<unknown> & {
  on(event: 'error', listener: () => void): unknown
  destroy(error?: Error): unknown
}

type Patience = { readonly silenceMs: () => number; readonly signal?: AbortSignal | undefined }

/** What a stream of the client delivers; ends with Silence when nothing comes while somebody waits for it. */
export async function* received<T>(stream: Source, { silenceMs, signal }: Patience): AsyncGenerator<T> {
  let waiting = true
  let timer: NodeJS.Timeout | undefined
  const watch = (): void => {
    const limitMs = silenceMs()
    timer = setTimeout(() => (waiting ? stream.destroy(new Silence(limitMs)) : watch()), limitMs)
  }
  const abort = (): void => void stream.destroy()
  // The client reports some errors after the reader has left; without a listener they would end the process.
  stream.on('error', () => undefined)
  signal?.addEventListener('abort', abort, { once: true })
  watch()
  try {
    for await (const item of stream) {
      waiting = false
      yield item as T
      waiting = true
      timer?.refresh()
    }
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
  }
}
