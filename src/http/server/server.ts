import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { HEADERS_MAX_BYTES, URL_MAX_CHARS } from './framing.ts'
import { createMalformedRequestHandler, refuseTunnel } from './malformedRequests.ts'

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
  const server = createServer({
    // Node counts the target among the headers; each has its own limit (framing.ts).
    maxHeaderSize: HEADERS_MAX_BYTES + URL_MAX_CHARS,
    headersTimeout: HEADERS_DEADLINE_MS,
    // The deadlines are looked at this often.
    connectionsCheckingInterval: DEADLINE_CHECK_MS,
    requestTimeout: REQUEST_DEADLINE_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // Node's own refusal would be no problem document (framing.ts).
    requireHostHeader: false,
  })
  const unreadable = createMalformedRequestHandler()
  let underWay = 0
  server.on('request', (req, res) => {
    if (!unreadable.begun(req, res)) return
    underWay++
    res.once('close', () => underWay--)
    app(req, res)
  })
  server.on('clientError', unreadable.answer)
  server.on('connect', refuseTunnel)
  // A body is asked for only when its head has passed every check (body.ts).
  for (const event of ['checkContinue', 'checkExpectation'])
    server.on(event, (req, res) => server.emit('request', req, res))
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
