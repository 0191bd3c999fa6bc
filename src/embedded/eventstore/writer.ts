import { backoffMs, sleep } from '../../lib/time.ts'
import { commitBatch, type Commit, unavailable } from './commit.ts'
import { initialEvents } from './initialEvents.ts'
import { NodeAlreadyRunning, type WriterSession, openWriterSession } from './storage.ts'
import { type Streams, openStreams } from './streams.ts'
import { type Tail, openTail } from './tail.ts'
import type { WriteRequest, Written } from './writeRequest.ts'

const BATCH_REQUESTS_MAX = 1000
const BATCH_BYTES_MAX = 4 * 1024 * 1024
const RECONNECT_MS = 100
const RECONNECT_MAX_MS = 1000

type Pending = { readonly request: WriteRequest; readonly resolve: (written: Written) => void }

/**
 * Decides requests in order of arrival, a batch in one transaction, while the next is collected. Responses are sent
 * after the commit and before the next batch begins, which then has all that arrive together.
 */
export type Writer = {
  readonly tail: Tail
  readonly streams: Streams
  write(request: WriteRequest): Promise<Written>
  /** Completes accepted requests, then ends. */
  close(): Promise<void>
}

type WriterOptions = {
  readonly connectionString: string
  /** Called when another node has taken the database over while this one had lost its connection. */
  readonly onReplaced: (error: NodeAlreadyRunning) => void
}

/** Throws without Postgres, or NodeAlreadyRunning. Long because its functions share the session and the queue. */
export const openWriter = async ({ connectionString, onReplaced }: WriterOptions): Promise<Writer> => {
  const tail = openTail()
  const streams = openStreams()
  const queue: Pending[] = []
  const closing = new AbortController()
  let session: WriterSession | undefined
  let draining = Promise.resolve()
  let busy = false

  // After a lost connection, the batch that was being committed is either stored or will never be: the old session's
  // lock becomes free only after Postgres has ended it.
  const adopt = (opened: WriterSession): void => {
    streams.clear()
    tail.reset(opened.last)
    session = opened
    void opened.lost.then(() => {
      if (session === opened) session = undefined
      if (!closing.signal.aborted) void reconnect()
    })
  }
  const reconnect = async (): Promise<void> => {
    for (let failures = 0; !closing.signal.aborted; failures += 1) {
      await sleep(backoffMs(failures, RECONNECT_MS, RECONNECT_MAX_MS))
      try {
        return adopt(await openWriterSession(connectionString))
      } catch (error) {
        if (error instanceof NodeAlreadyRunning) return onReplaced(error)
      }
    }
  }

  const drain = async (): Promise<void> => {
    while (queue.length > 0) {
      const batch = await nextBatch(queue)
      const commit = await attempt(session, batch)
      for (const record of commit.records) streams.committed(record)
      tail.append(commit.records)
      for (const [index, { resolve }] of batch.entries()) resolve(commit.written[index] ?? UNKNOWN)
    }
    busy = false
  }
  const attempt = async (current: WriterSession | undefined, batch: readonly Pending[]): Promise<Commit> => {
    const requests = batch.map(pending => pending.request)
    if (current === undefined) return unavailable(requests, 'none')
    const commit = await commitBatch({ session: current, streams, end: tail.end() }, requests)
    if (commit.headsUnsure === true) streams.clear()
    return commit
  }

  adopt(await openWriterSession(connectionString))
  if (tail.head() === 0n) queue.push(...initialEvents().map(request => ({ request, resolve: () => undefined })))
  await drain()
  return {
    tail,
    streams,
    write: request =>
      new Promise(resolve => {
        if (closing.signal.aborted) return resolve({ kind: 'unavailable', effect: 'none' })
        queue.push({ request, resolve })
        if (busy) return
        busy = true
        draining = drain()
      }),
    close: async () => {
      closing.abort()
      await draining
      await session?.end()
    },
  }
}

const UNKNOWN: Written = { kind: 'unavailable', effect: 'unknown' }

const takeBatch = (queue: Pending[]): Pending[] => {
  let bytes = 0
  const end = queue.findIndex(({ request }, index) => {
    bytes += request.bytes
    return index >= BATCH_REQUESTS_MAX || (index > 0 && bytes > BATCH_BYTES_MAX)
  })
  return queue.splice(0, end === -1 ? queue.length : end)
}

/** Has the requests that arrive in this turn of the event loop; waits for no other. */
const nextBatch = (queue: Pending[]): Promise<Pending[]> =>
  new Promise(resolve => setImmediate(() => resolve(takeBatch(queue))))
