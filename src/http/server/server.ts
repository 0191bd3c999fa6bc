import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo, Server as SocketServer, Socket } from 'node:net'
import { HEADERS_MAX_BYTES, URL_MAX_CHARS } from '../request/framing.ts'
import { createMalformedRequestHandler, refuseConnect } from './malformedRequests.ts'
import { createPipelining } from '../admission/pipelining.ts'

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

/** The server, and whether it has no request in flight. */
const createHttpServer = (app: RequestListener) => {
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
  const inTurn = createPipelining()
  let underWay = 0
  server.on('request', (req, res) => {
    if (!malformedRequests.register(req, res)) return
    underWay++
    res.once('close', () => underWay--)
    inTurn(req, res, () => app(req, res))
  })
  server.on('clientError', malformedRequests.answer)
  server.on('connect', refuseConnect)
  // 100 Continue is sent only after the head has passed every check (body.ts).
  for (const event of ['checkContinue', 'checkExpectation'])
    server.on(event, (req, res) => server.emit('request', req, res))
  return { server, isIdle: () => underWay === 0 }
}

export type ListeningPlace = {
  readonly host: string
  readonly port: number
  /** A server that listens there already; its socket is taken over. */
  readonly socket?: SocketServer | undefined
}

/** Throws the system error when the port is not available. */
export const listen = async (app: RequestListener, { host, port, socket }: ListeningPlace): Promise<Listening> => {
  const { server, isIdle } = createHttpServer(app)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    if (socket) server.listen(socket, () => resolve())
    else server.listen(port, host, () => resolve())
  })
  const closed = (): Promise<void> => new Promise(resolve => server.close(() => resolve()))
  return {
    port: (server.address() as AddressInfo).port,
    close: graceMs => close(server, { closed, isIdle, graceMs }),
  }
}

/** Serves connections that another process has accepted. */
export type Receiving = Pick<Listening, 'close'> & { readonly receive: (connection: Socket) => void }

export const receive = (app: RequestListener): Receiving => {
  const { server, isIdle } = createHttpServer(app)
  // Node begins to check the timeouts of connections with this event.
  server.emit('listening')
  const open = new Set<Socket>()
  const closed = async (): Promise<void> => {
    // It does not count connections that it has not accepted.
    server.close()
    await Promise.all([...open].map(connection => once(connection, 'close')))
  }
  return {
    receive: connection => {
      // As Node does for the connections of its own server: a client may end its side when it has sent its request.
      connection.allowHalfOpen = true
      open.add(connection)
      connection.once('close', () => open.delete(connection))
      server.emit('connection', connection)
      connection.resume()
    },
    close: graceMs => close(server, { closed, isIdle, graceMs }),
  }
}

type Closing = {
  readonly closed: () => Promise<void>
  readonly isIdle: () => boolean
  readonly graceMs: number
}

const close = async (server: Server, { closed, isIdle, graceMs }: Closing): Promise<void> => {
  const closing = closed()
  const late = setTimeout(() => server.closeAllConnections(), graceMs)
  // Idle connections and incomplete requests do not delay the shutdown.
  const watch = setInterval(() => isIdle() && server.closeAllConnections(), IDLE_CHECK_MS)
  await closing
  clearTimeout(late)
  clearInterval(watch)
}
