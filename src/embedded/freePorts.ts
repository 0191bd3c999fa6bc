import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { promisify } from 'node:util'
import { systemCode } from '../lib/startupError.ts'

/**
 * Ports below those that the system gives to outgoing connections, which could take one while its server is not
 * listening, even a connection that is meant for that server.
 */

const SYSTEM_RANGE = '/proc/sys/net/ipv4/ip_local_port_range'
/** Where the ports of outgoing connections begin on Linux unless it is set, and below where they begin elsewhere. */
const SYSTEM_RANGE_BEGINS = 32_768
/** Above the ports that browsers and Node's fetch refuse, of which 10080 is the last. */
const LOWEST = 10_100
const PORTS_MIN = 1_000
const ATTEMPTS_MAX = 50

const outgoingFrom = (): number => {
  try {
    return Number(readFileSync(SYSTEM_RANGE, 'utf8').trim().split(/\s+/)[0])
  } catch {
    return SYSTEM_RANGE_BEGINS
  }
}

/** A port to try; 0, which lets the system choose one, where almost all ports are those of outgoing connections. */
const candidate = (): number => {
  const end = outgoingFrom()
  return end - LOWEST >= PORTS_MIN ? randomInt(LOWEST, end) : 0
}

export type HeldPort = {
  readonly port: number
  /** Listens on the port and refuses connections. Another server takes its socket over by `listen(socket)`. */
  readonly socket: Server
  /** Closes the socket; without effect when a server that has taken it over has closed it. */
  readonly release: () => Promise<void>
}

const hold = async (requestedPort: number, host: string): Promise<HeldPort> => {
  const socket = createServer(connection => connection.destroy())
  socket.listen({ port: requestedPort, host, exclusive: true })
  await once(socket, 'listening')
  const { port } = socket.address() as AddressInfo
  return { port, socket, release: promisify(socket.close.bind(socket)) }
}

/** Holds a free port against other programs. Rejects with the system error for a wrong host. */
export const holdFreePort = async (host: string): Promise<HeldPort> => {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await hold(attempt < ATTEMPTS_MAX ? candidate() : 0, host)
    } catch (error) {
      if (systemCode(error) !== 'EADDRINUSE' || attempt >= ATTEMPTS_MAX) throw error
    }
  }
}

/** Holds this port, or a free one for 0. Rejects with the system error when it is in use or not permitted. */
export const holdPort = (port: number, host: string): Promise<HeldPort> =>
  port === 0 ? holdFreePort(host) : hold(port, host)

/** A port that was free a moment ago, for a program that can be given no socket. */
export const findFreePort = async (host: string): Promise<number> => {
  const { port, release } = await holdFreePort(host)
  await release()
  return port
}
