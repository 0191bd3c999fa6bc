import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { randomUUID } from 'node:crypto'
import { documentOf, Problem, statusOf, type ErrorCode } from './problem.ts'
import { OLDEST_VERSION } from './versions/index.ts'

const HEADERS_MAX_BYTES = 16 * 1024
const HEADERS_DEADLINE_MS = 10_000
const REQUEST_DEADLINE_MS = 40_000
const DEADLINE_CHECK_MS = 1_000
const KEEP_ALIVE_MS = 30_000
const IDLE_CHECK_MS = 50

export type Listening = {
  readonly port: number
  /** Takes no new requests, lets the running ones end, and cuts those that are still there after the grace. */
  readonly close: (graceMs: number) => Promise<void>
}

/** Throws the system's error when the port cannot be had. */
export const listen = async (
  app: RequestListener,
  { host, port }: { host: string; port: number },
): Promise<Listening> => {
  const server = createServer(
    {
      maxHeaderSize: HEADERS_MAX_BYTES,
      headersTimeout: HEADERS_DEADLINE_MS,
      // The deadlines are looked at this often.
      connectionsCheckingInterval: DEADLINE_CHECK_MS,
      requestTimeout: REQUEST_DEADLINE_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      requireHostHeader: true,
    },
    app,
  )
  server.on('clientError', answerUnreadable)
  let underWay = 0
  server.on('request', (_, res) => {
    underWay++
    res.once('close', () => underWay--)
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => resolve())
  })
  return {
    port: (server.address() as AddressInfo).port,
    close: graceMs => close(server, () => underWay === 0, graceMs),
  }
}

const close = async (server: Server, isIdle: () => boolean, graceMs: number): Promise<void> => {
  const closed = new Promise<void>(resolve => server.close(() => resolve()))
  const late = setTimeout(() => server.closeAllConnections(), graceMs)
  // Nobody is waited for who only keeps a connection open, or has sent half a request.
  const watch = setInterval(() => isIdle() && server.closeAllConnections(), IDLE_CHECK_MS)
  await closed
  clearTimeout(late)
  clearInterval(watch)
}

const CODES: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
}

/** What Node could not read as HTTP still gets a problem, then the connection ends: nothing after it can be trusted. */
const answerUnreadable = (error: Error & { code?: string }, socket: Socket): void => {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const code = CODES[error.code ?? ''] ?? 'bad_request_framing'
  const correlationId = randomUUID()
  const body = JSON.stringify(documentOf(new Problem(code), { instance: '', correlationId }))
  const head = [
    `HTTP/1.1 ${statusOf(code)} ${code}`,
    'Content-Type: application/problem+json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Correlation-ID: ${correlationId}`,
    `API-Version: ${OLDEST_VERSION}`,
    'Cache-Control: no-store',
    'X-Content-Type-Options: nosniff',
    'Connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}
