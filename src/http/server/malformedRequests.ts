import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { type ErrorCode, Problem, retryOf, statusOf } from '../problems/problemCatalogue.ts'
import { documentOf } from '../problems/problemDocument.ts'
import { OLDEST_VERSION } from '../versions/index.ts'

/** Answers bytes that are not HTTP, or requests that arrive too slowly, with a problem, and closes the connection. */

/** The time that a peer has to read the response before its connection is destroyed. */
const LINGER_MS = 1_000
/** The beginning of a request line without an end. */
const REQUEST_LINE = /^[A-Z-]+ [^\r\n]*$/

type ClientError = Error & { readonly code?: string; readonly rawPacket?: Buffer; readonly bytesParsed?: number }

const codeOf = ({ code, rawPacket, bytesParsed }: ClientError): ErrorCode => {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'request_timeout'
  if (code !== 'HPE_HEADER_OVERFLOW') return 'bad_request_framing'
  const read = rawPacket?.subarray(0, bytesParsed).toString('latin1') ?? ''
  return REQUEST_LINE.test(read) ? 'uri_too_long' : 'headers_too_large'
}

const answerOf = (code: ErrorCode): string => {
  const correlationId = randomUUID()
  const body = JSON.stringify(documentOf(new Problem(code), { instance: '', correlationId }))
  const { after_seconds } = retryOf(code)
  const status = statusOf(code)
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'Content-Type: application/problem+json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Correlation-ID: ${correlationId}`,
    `API-Version: ${OLDEST_VERSION}`,
    'Cache-Control: no-store',
    'X-Content-Type-Options: nosniff',
    ...(after_seconds === undefined ? [] : [`Retry-After: ${after_seconds}`]),
    'Connection: close',
  ]
  return `${head.join('\r\n')}\r\n\r\n${body}`
}

const end = (socket: Duplex, answer = ''): void => {
  const late = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.once('close', () => clearTimeout(late))
  socket.end(answer)
}

/** Refuses CONNECT: this service is no proxy. */
export const refuseConnect = (_req: IncomingMessage, socket: Duplex): void => {
  socket.on('error', () => socket.destroy())
  end(socket, answerOf('bad_request_framing'))
}

type Exchanges = { readonly open: Set<ServerResponse>; last: ServerResponse }

/**
 * Keeps the order of responses: if the error of a malformed second request overtook the first response, the client
 * would take it for that, and believe that the first request had no effect.
 */
export const createMalformedRequestHandler = () => {
  const connections = new WeakMap<Duplex, Exchanges>()
  const ended = new WeakSet<Duplex>()

  /** Registers a request. False when an error response has already closed its connection: then it is not executed. */
  const register = (req: IncomingMessage, res: ServerResponse): boolean => {
    if (ended.has(req.socket)) return false
    const exchanges = connections.get(req.socket) ?? { open: new Set(), last: res }
    connections.set(req.socket, exchanges)
    exchanges.open.add(res)
    exchanges.last = res
    res.once('close', () => exchanges.open.delete(res))
    return true
  }

  const answer = async (clientError: ClientError, socket: Duplex): Promise<void> => {
    // The parser emits an error for every further packet.
    if (ended.has(socket)) return
    ended.add(socket)
    const { open, last } = connections.get(socket) ?? { open: new Set<ServerResponse>(), last: undefined }
    const broken = last?.req.complete === false ? last : undefined
    await Promise.all([...open].filter(res => res !== broken).map(res => once(res, 'close')))
    if (clientError.code === 'ECONNRESET' || !socket.writable) socket.destroy()
    else if (!broken?.headersSent) end(socket, answerOf(codeOf(clientError)))
    // The broken request was answered already. A response that is still being written must not look complete.
    else if (broken.writableFinished) end(socket)
    else socket.destroy()
  }

  return { register, answer }
}
