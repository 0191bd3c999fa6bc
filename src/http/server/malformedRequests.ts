import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { documentOf, type ErrorCode, Problem, retryOf, statusOf } from '../response/problemCatalogue.ts'
import { OLDEST_VERSION } from '../versions/index.ts'

/** What comes on a connection and is not HTTP, or comes too slowly: it gets a problem, and the connection ends. */

/** A peer that does not close its end has so long to read what it was told. */
const LINGER_MS = 1_000
/** What a request line that never ends begins with. */
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

/** A connection that wants to be something else than HTTP. */
export const refuseTunnel = (_req: IncomingMessage, socket: Duplex): void => {
  socket.on('error', () => socket.destroy())
  end(socket, answerOf('bad_request_framing'))
}

type Exchanges = { readonly open: Set<ServerResponse>; last: ServerResponse }

/**
 * The answers under way are remembered for the sake of their order: what could not be read is often the second request
 * on its connection, and an answer to it that overtakes the first one's would pass for that. The client would be told
 * that nothing was done while the first request is carried out.
 */
export const createMalformedRequestHandler = () => {
  const connections = new WeakMap<Duplex, Exchanges>()
  const ended = new WeakSet<Duplex>()

  /** Whether the request is to be carried out: not when its connection was told already that it ends. */
  const begun = (req: IncomingMessage, res: ServerResponse): boolean => {
    if (ended.has(req.socket)) return false
    const exchanges = connections.get(req.socket) ?? { open: new Set(), last: res }
    connections.set(req.socket, exchanges)
    exchanges.open.add(res)
    exchanges.last = res
    res.once('close', () => exchanges.open.delete(res))
    return true
  }

  const answer = async (trouble: ClientError, socket: Duplex): Promise<void> => {
    // The parser complains of every packet that still comes.
    if (ended.has(socket)) return
    ended.add(socket)
    const { open, last } = connections.get(socket) ?? { open: new Set<ServerResponse>(), last: undefined }
    const broken = last?.req.complete === false ? last : undefined
    await Promise.all([...open].filter(res => res !== broken).map(res => once(res, 'close')))
    if (trouble.code === 'ECONNRESET' || !socket.writable) socket.destroy()
    else if (!broken?.headersSent) end(socket, answerOf(codeOf(trouble)))
    // It has its answer already. One that is still being written must not look whole.
    else if (broken.writableFinished) end(socket)
    else socket.destroy()
  }

  return { begun, answer }
}
