import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/**
 * A TCP proxy with faults: it forwards everything, loses some responses together with their connections, or leaves its
 * connections half open.
 */
export type TcpProxy = {
  readonly port: number
  /** The port of the server, which may change. */
  readonly lead: (port: number) => void
  /** The probability that a response and its connection are lost after the request has taken effect. */
  readonly loseAnswers: (probability: number) => void
  readonly lost: () => number
  /** The present connections stay open and carry nothing any more; new ones work. */
  readonly silence: () => void
  readonly close: () => Promise<void>
}

export const openTcpProxy = async (): Promise<TcpProxy> => {
  let target = 0
  let probability = 0
  let lost = 0
  const sockets = new Set<Socket>()

  const pass = (client: Socket): void => {
    const server = connect({ host: '127.0.0.1', port: target })
    const end = (): void => {
      for (const socket of [client, server]) {
        socket.destroy()
        sockets.delete(socket)
      }
    }
    for (const socket of [client, server]) {
      sockets.add(socket.setNoDelay(true))
      socket.on('error', end).on('close', end)
    }
    client.on('data', chunk => server.write(chunk))
    server.on('data', chunk => {
      if (Math.random() >= probability) return void client.write(chunk)
      lost += 1
      end()
    })
  }

  const listener = createServer(pass)
  await new Promise<void>(resolve => listener.listen(0, '127.0.0.1', resolve))
  return {
    port: (listener.address() as AddressInfo).port,
    lead: port => {
      target = port
    },
    loseAnswers: goal => {
      probability = goal
    },
    lost: () => lost,
    silence: () => {
      for (const socket of sockets) socket.removeAllListeners('data').resume()
    },
    close: async () => {
      const closed = new Promise(resolve => listener.close(resolve))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
