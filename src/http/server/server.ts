import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { HEADERS_MAX_BYTES, URL_MAX_CHARS } from './framing.ts'
import { createMalformedRequestHandler, refuseConnect } from './malformedRequests.ts'

/** The HTTP server: its limits and timeouts, and its graceful shutdown. */

const HEADERS_DEADLINE_MS = 10_000
/** The time for a whole request to arrive: its head, then its body, which has a deadline of its own (body.ts). */
const ARRIVAL_DEADLINE_MS = 40_000
const DEADLINE_CHECK_MS = 1_000
const KEEP_ALIVE_MS = 30_000
const IDLE_CHECK_MS = 50

export type Listening = {
  readonly port: number
  /** Accepts no new requests, waits for those in progress, and closes all connections after the grace. */
  readonly close: (graceMs: number) => Promise<void>
}

/** Throws the system error when the port is not available. */
export const listen = async (
  app: RequestListener,
  { host, port }: { host: string; port: number },
): Promise<Listening> => {
  const server = createServer({
    // Node counts the target as a part of the headers; framing.ts has a limit for each.
    maxHeaderSize: HEADERS_MAX_BYTES + URL_MAX_CHARS,
    headersTimeout: HEADERS_DEADLINE_MS,
    connectionsCheckingInterval: DEADLINE_CHECK_MS,
    requestTimeout: ARRIVAL_DEADLINE_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // Node's own refusal would not be a problem document; framing.ts checks Host.
    requireHostHeader: false,
  })
  const malformedRequests = createMalformedRequestHandler()
  let underWay = 0
  server.on('request', (req, res) => {
    if (!malformedRequests.register(req, res)) return
    underWay++
    res.once('close', () => underWay--)
    app(req, res)
  })
  server.on('clientError', malformedRequests.answer)
  server.on('connect', refuseConnect)
  // 100 Continue is sent only after the head has passed every check (body.ts).
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
  // Idle connections and incomplete requests do not delay the shutdown.
  const watch = setInterval(() => isIdle() && server.closeAllConnections(), IDLE_CHECK_MS)
  await closed
  clearTimeout(late)
  clearInterval(watch)
}
