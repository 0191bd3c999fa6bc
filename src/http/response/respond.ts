import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { workFor } from '../../fairness/currentAccount.ts'
import { exactJson } from '../../../projections/exactAmounts.ts'
import type { RequestTurn } from '../admission/requestTurn.ts'
import { coded } from './contentCoding.ts'
import { type Problem, retryOf, statusOf } from '../problems/problemCatalogue.ts'
import { documentOf } from '../problems/problemDocument.ts'
import type { Reply, Streamed } from '../route.ts'
import { OLDEST_VERSION } from '../versions/index.ts'
import type { RequestedVersion } from '../versions/requestedVersion.ts'

type Headers = Readonly<Record<string, string>>

/** The results of the checks so far, in the `locals` of the Express response. */
type Locals = {
  readonly correlationId?: string
  readonly requestedVersion?: RequestedVersion
  readonly rateHeaders?: Headers
  readonly challenge?: string
  readonly turn?: RequestTurn
  /** For the metric of requests: the code of the problem, and the time of the first byte of a streamed response. */
  errorCode?: string
  streamedAt?: number
}
type Response = ServerResponse & { locals: Locals }

const commonHeaders = ({ locals }: Response): Record<string, string> => ({
  'X-Correlation-ID': locals.correlationId ?? '',
  'API-Version': locals.requestedVersion?.version ?? OLDEST_VERSION,
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  ...locals.rateHeaders,
  ...locals.requestedVersion?.deprecation,
})

/** The headers of a response, with the links of both: to the next page, and about the version. */
const withCommonHeaders = (res: Response, own: Headers = {}): Headers => {
  const common = commonHeaders(res)
  const all = { ...common, ...own }
  return own['Link'] && common['Link'] ? { ...all, Link: `${own['Link']}, ${common['Link']}` } : all
}

/** Adds the common headers to a response of a library, when its head is written: it may drop those set before. */
export const setCommonHeaders = (res: Response): void => {
  const begin = res.writeHead.bind(res) as (...args: readonly unknown[]) => Response
  const writeHead = (...args: readonly unknown[]): Response => {
    for (const [name, value] of Object.entries(commonHeaders(res))) if (!res.hasHeader(name)) res.setHeader(name, value)
    return begin(...args)
  }
  Object.assign(res, { writeHead })
}

const textOf = (body: Reply['body']): string => (typeof body === 'string' ? body : exactJson(body))

export const sendReply = async (req: IncomingMessage, res: Response, reply: Reply): Promise<void> => {
  const { status, body, stream, headers, contentType = 'application/json' } = reply
  const common = withCommonHeaders(res, headers)
  if (stream && req.method !== 'HEAD')
    return sendStream(res, { status, headers: { ...common, 'Content-Type': contentType } }, stream)
  if (body === undefined) {
    res.writeHead(status, stream ? { ...common, 'Content-Type': contentType } : common).end()
    return
  }
  const { bytes, headers: all } = await coded(req, textOf(body), { ...common, 'Content-Type': contentType })
  res.writeHead(status, { ...all, 'Content-Length': bytes.length })
  res.end(req.method === 'HEAD' ? undefined : bytes)
}

/** The connection of a reader that accepts no data for this time is closed. */
const UNREAD_MAX_MS = 30_000

/** Waits until the reader has accepted the written data, so a slow reader causes no buffering. */
const whenDrained = async (res: Response, gone: AbortSignal): Promise<void> => {
  const signal = AbortSignal.any([gone, AbortSignal.timeout(UNREAD_MAX_MS)])
  await once(res, 'drain', { signal }).catch(() => res.destroy())
}

type Head = { readonly status: number; readonly headers: Readonly<Record<string, string>> }

const sendStream = async (res: Response, { status, headers }: Head, stream: Streamed): Promise<void> => {
  const gone = new AbortController()
  res.on('close', () => gone.abort())
  res.writeHead(status, headers)
  res.locals.streamedAt = performance.now()
  // A stream may last for hours, so it holds no turn. Its queries still take the turns of its account.
  const account = res.locals.turn?.account()
  res.locals.turn?.end()
  const send = async (chunk: string | Uint8Array): Promise<void> => {
    if (!res.write(chunk) && !gone.signal.aborted) await whenDrained(res, gone.signal)
  }
  try {
    await (account ? workFor(account, () => stream(send, gone.signal)) : stream(send, gone.signal))
  } catch (error) {
    // The connection is destroyed, so an incomplete response does not look complete.
    res.destroy()
    throw error
  }
  res.end()
}

export const sendProblem = (req: IncomingMessage, res: Response, problem: Problem): void => {
  if (res.headersSent) {
    // The head was sent already: the connection is destroyed, so an incomplete response does not look complete.
    res.destroy()
    return
  }
  res.locals.errorCode = problem.code
  const correlationId = res.locals.correlationId ?? ''
  const instance = (req.url ?? '').split('?', 1)[0] ?? ''
  const bytes = Buffer.from(JSON.stringify(documentOf(problem, { instance, correlationId })))
  const status = statusOf(problem.code)
  const { after_seconds } = retryOf(problem.code, problem.extras)
  const { challenge } = res.locals
  res.writeHead(status, {
    ...commonHeaders(res),
    'Content-Type': 'application/problem+json',
    'Content-Length': bytes.length,
    ...(after_seconds === undefined ? {} : { 'Retry-After': String(after_seconds) }),
    ...(challenge === undefined ? {} : { 'WWW-Authenticate': challenge }),
    ...problem.extras.headers,
  })
  res.end(req.method === 'HEAD' ? undefined : bytes)
}
