import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/**
 * Pipelined requests: of one connection at most PIPELINED_MAX are at work. The others wait, and the connection is not
 * read meanwhile, so that a client that sends without reading fills its own buffers and not those of the service.
 */

const PIPELINED_MAX = 8

type Connection = { readonly open: Set<ServerResponse>; readonly waiting: (() => void)[]; atWork: number }

const newConnection = (socket: Socket): Connection => {
  const connection: Connection = { open: new Set(), waiting: [], atWork: 0 }
  // Node itself resumes the connection after each request that it has parsed.
  socket.on('resume', () => {
    if (connection.waiting.length > 0) socket.pause()
  })
  socket.once('close', () => {
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
  connection.atWork++
  if (connection.waiting.length === 0) socket.resume()
  setImmediate(work)
}

/** Calls `work` when it is the request's turn on its connection. */
export type Pipelining = (req: IncomingMessage, res: ServerResponse, work: () => void) => void

export const createPipelining = (): Pipelining => {
  const connections = new WeakMap<Socket, Connection>()

  const connectionOf = (socket: Socket): Connection => {
    const connection = connections.get(socket) ?? newConnection(socket)
    connections.set(socket, connection)
    return connection
  }

  return (req, res, work) => {
    const { socket } = req
    const connection = connectionOf(socket)
    connection.open.add(res)
    res.once('close', () => {
      connection.open.delete(res)
      connection.atWork--
      beginNext(connection, socket)
    })
    if (connection.atWork < PIPELINED_MAX) {
      connection.atWork++
      return work()
    }
    connection.waiting.push(work)
    socket.pause()
  }
}
