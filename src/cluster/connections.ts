import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'

/**
 * The port of a service of several processes. The primary accepts the connections and gives them to the API processes
 * in turn. Without a process that serves, connections wait here.
 *
 * node:cluster does the same, and keeps a connection open forever whose process is killed on the way to it; with
 * `reusePort` the processes would accept for themselves, on Linux alone.
 */

const WAITING_MAX = 1_000

/** A process that may serve; `give` is undefined while it does not. */
type Receiver = { readonly give: () => ((socket: Socket) => void) | undefined }

export type Connections = {
  readonly port: number
  /** To be called when a process begins to serve. */
  readonly distribute: () => void
  /** Accepts no more connections. Those that processes have are not affected. */
  readonly close: () => void
}

/** `apis` are the API processes. Rejects with the system error when the port is not available. */
export const acceptConnections = async (
  { host, port }: { readonly host: string; readonly port: number },
  apis: () => readonly Receiver[],
): Promise<Connections> => {
  const waiting: Socket[] = []
  let turn = 0
  const distribute = (): void => {
    while (waiting.length > 0) {
      const serving = apis().flatMap(({ give }) => give() ?? [])
      const give = serving[turn % serving.length]
      if (give === undefined) return
      turn += 1
      const socket = waiting.shift()
      if (socket && !socket.destroyed) give(socket)
    }
  }
  // Read by the process that gets it. A response in several writes must not wait for the acknowledgement of the first.
  const server = createServer({ pauseOnConnect: true, allowHalfOpen: true, noDelay: true }, socket => {
    socket.on('error', () => undefined)
    if (waiting.length >= WAITING_MAX) return socket.destroy()
    waiting.push(socket)
    return distribute()
  })
  server.listen(port, host)
  await once(server, 'listening')
  const address = server.address()
  return {
    port: typeof address === 'object' && address ? address.port : port,
    distribute,
    close: () => {
      server.close()
      for (const socket of waiting.splice(0)) socket.destroy()
    },
  }
}
