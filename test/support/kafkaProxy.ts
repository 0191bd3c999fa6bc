import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** Of Kafka's protocol. */
export const OFFSET_COMMIT = 8
export const OFFSET_FETCH = 9
export const NOT_COORDINATOR = 16

const LENGTH_BYTES = 4
const CORRELATION_AT = 8

/**
 * A proxy in front of a broker that replaces the error code of some answers. For requests whose answer ends with an
 * error code, as those named above do.
 */
export const openKafkaProxy = async () => {
  let target = 0
  let faults = { apiKey: -1, errorCode: 0, times: 0 }
  let replaced = 0
  const sockets = new Set<Socket>()

  const pass = (client: Socket): void => {
    const server = connect({ host: '127.0.0.1', port: target })
    const end = (): void => {
      for (const socket of [client, server]) socket.destroy()
    }
    for (const socket of [client, server]) {
      sockets.add(socket.setNoDelay(true))
      socket.on('error', end).on('close', end)
    }
    const apiKeys = new Map<number, number>()
    onFrames(client, frame => {
      apiKeys.set(frame.readInt32BE(CORRELATION_AT), frame.readInt16BE(LENGTH_BYTES))
      server.write(frame)
    })
    onFrames(server, frame => {
      const correlationId = frame.readInt32BE(LENGTH_BYTES)
      if (apiKeys.get(correlationId) === faults.apiKey && replaced < faults.times) {
        replaced += 1
        frame.writeInt16BE(faults.errorCode, frame.length - 2)
      }
      apiKeys.delete(correlationId)
      client.write(frame)
    })
  }

  const listener = createServer(pass)
  await new Promise<void>(resolve => listener.listen(0, '127.0.0.1', resolve))
  return {
    port: (listener.address() as AddressInfo).port,
    /** The port of the broker. */
    lead: (port: number): void => {
      target = port
    },
    /** From now on, so many answers to requests with this key have this error code. */
    refuse: (apiKey: number, errorCode: number, times: number): void => {
      faults = { apiKey, errorCode, times }
      replaced = 0
    },
    /** How many have had it since. */
    replaced: () => replaced,
    close: async (): Promise<void> => {
      const closed = new Promise(resolve => listener.close(resolve))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

/** Each request and each answer begins with its length. */
const onFrames = (socket: Socket, take: (frame: Buffer) => void): void => {
  let rest: Buffer = Buffer.alloc(0)
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk])
    while (rest.length >= LENGTH_BYTES && rest.length >= LENGTH_BYTES + rest.readInt32BE(0)) {
      const length = LENGTH_BYTES + rest.readInt32BE(0)
      take(Buffer.from(rest.subarray(0, length)))
      rest = rest.subarray(length)
    }
  })
}
