import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/**
 * Pipelined requests. Of one connection at most AT_WORK_MAX are processed; some more wait, and the connection is not read
 * meanwhile. Node parses all that has arrived before it looks at the pause, up to a thousand small requests, so a
 * connection with more than WAITING_MAX of them is closed, as RFC 9112 §9.3 permits: only attackers send so many, and each
 * takes several kilobytes.
 */

const AT_WORK_MAX = 8
const WAITING_MAX = 56
/** Of all connections together. */
const ALL_WAITING_MAX = 2_000

type Connection = { readonly open: Set<ServerResponse>; readonly waiting: (() => void)[]; atWork: number }

/** Calls `work` when it is the request's turn on its connection. */
export type Pipelining = (req: IncomingMessage, res: ServerResponse, work: () => void) => void

/**
 * Without the stack traces of the errors with which Node aborts each request that it has parsed: beside strangers who
 * pipeline, they raised the p99 of others from 27 to 42 ms (test/soak/attacks/strangers.ts).
 */
const destroy = (socket: Socket): void => {
  const { stackTraceLimit } = Error
  socket.prependOnceListener('close', () => (Error.stackTraceLimit = 0))
  socket.once('close', () => (Error.stackTraceLimit = stackTraceLimit))
  socket.destroy()
}

/** Long because its functions share the connections of one server. */
export const createPipelining = (): Pipelining => {
  const connections = new WeakMap<Socket, Connection>()
  let allWaiting = 0

  const create = (socket: Socket): Connection => {
    const connection: Connection = { open: new Set(), waiting: [], atWork: 0 }
    connections.set(socket, connection)
    // Node itself resumes the connection after each request that it has parsed.
    socket.on('resume', () => {
      if (connection.waiting.length > 0) socket.pause()
    })
    socket.once('close', () => {
      allWaiting -= connection.waiting.length
      connection.waiting.length = 0
      // Node closes the response that is being written. Those behind it would never be closed, nor would their turns end.
      setImmediate(() => {
        for (const res of connection.open) res.emit('close')
      })
    })
    return connection
  }

  const beginNext = (connection: Connection, socket: Socket): void => {
    const work = socket.destroyed ? undefined : connection.waiting.shift()
    if (work === undefined) return
    allWaiting--
    connection.atWork++
    if (connection.waiting.length === 0) socket.resume()
    setImmediate(work)
  }

  const wait = (connection: Connection, socket: Socket, work: () => void): void => {
    if (connection.waiting.length >= WAITING_MAX || allWaiting >= ALL_WAITING_MAX) return destroy(socket)
    allWaiting++
    connection.waiting.push(work)
    socket.pause()
  }

  return (req, res, work) => {
    const { socket } = req
    // The rest of what was parsed from a connection that is closed.
    if (socket.destroyed) return
    const connection = connections.get(socket) ?? create(socket)
    connection.open.add(res)
    res.once('close', () => {
      connection.open.delete(res)
      connection.atWork--
      beginNext(connection, socket)
    })
    if (connection.atWork >= AT_WORK_MAX) return wait(connection, socket, work)
    connection.atWork++
    work()
  }
}
