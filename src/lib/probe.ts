import { once } from 'node:events'
import { connect, isIP, type Socket } from 'node:net'
import { connect as connectTls, type ConnectionOptions } from 'node:tls'

/** Tries to connect to a server, before its client does or because its client hides the reason of a failure. */

export type Place = { readonly host: string; readonly port: number }

/** The place of `host:port`; none without a host. */
export const placeIn = (address: string, defaultPort: number): readonly Place[] => {
  const { hostname, port } = new URL(`tcp://${address}`)
  return hostname === '' ? [] : [{ host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port) || defaultPort }]
}

const HTTPS_PORT = 443
const HTTP_PORT = 80

export const placeOfUrl = (url: string): readonly Place[] => {
  const { host, protocol } = new URL(url)
  return placeIn(host, protocol === 'https:' ? HTTPS_PORT : HTTP_PORT)
}

/** `ca`: the certificates that are trusted instead of those of Node. */
export const urlEncryption = (url: string, ca?: string): Encryption | undefined => {
  if (new URL(url).protocol !== 'https:') return undefined
  return ca === undefined ? {} : { ca }
}

/** How the connection is encrypted, and its peer verified. */
export type Encryption = Pick<ConnectionOptions, 'ca' | 'cert' | 'key' | 'ALPNProtocols'> & {
  /** Postgres changes to TLS when it is asked to. */
  readonly begins?: 'by asking Postgres'
  /** A request that the server answers: in TLS 1.3 it may refuse the client's certificate after the handshake. */
  readonly request?: Uint8Array
}

export type Probe = {
  readonly encryption?: Encryption | undefined
  /** The limit until the connection; the handshake has its own. */
  readonly timeoutMs: number
}

/** A process that loads its modules, or is on a busy machine, needs seconds for a handshake. */
const HANDSHAKE_MAX_MS = 10_000

/** Length and code of the message SSLRequest. */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])
const SSL_ACCEPTED = 'S'

const askPostgres = async (socket: Socket, signal: AbortSignal): Promise<void> => {
  socket.write(SSL_REQUEST)
  const [answer] = (await once(socket, 'data', { signal })) as [Buffer]
  // The words of node-postgres.
  if (answer.toString() !== SSL_ACCEPTED) throw new Error('The server does not support SSL connections')
}

type Handshake = Encryption & { readonly host: string; readonly socket: Socket }

const shakeHands = async ({ begins, request, ...options }: Handshake, signal: AbortSignal): Promise<void> => {
  const { host, socket } = options
  if (begins !== undefined) await askPostgres(socket, signal)
  const secured = connectTls({ ...options, ...(isIP(host) === 0 ? { servername: host } : {}) })
  try {
    await once(secured, 'secureConnect', { signal })
    if (request === undefined) return
    secured.write(request)
    await once(secured, 'data', { signal })
  } finally {
    secured.destroy()
  }
}

/** The error of the connection; undefined if it succeeds. A server that accepts it and then stays silent is not examined. */
export const probe = async ({ host, port }: Place, { encryption, timeoutMs }: Probe): Promise<unknown> => {
  const socket = connect({ host, port })
  // Of a connection that has ended.
  socket.on('error', () => undefined)
  try {
    await within(timeoutMs, signal => once(socket, 'connect', { signal }))
    if (encryption === undefined) return undefined
    await within(HANDSHAKE_MAX_MS, signal => shakeHands({ ...encryption, host, socket }, signal))
    return undefined
  } catch (error) {
    if (!(error instanceof TimedOut)) return error
    return socket.connecting ? error : undefined
  } finally {
    socket.destroy()
  }
}

class TimedOut extends Error {}

/** While a process loads its modules, its timers are late, and an answer may be there that it has not seen yet. */
const within = async (timeoutMs: number, work: (signal: AbortSignal) => Promise<unknown>): Promise<void> => {
  const limit = new AbortController()
  const timer = setTimeout(() => setImmediate(() => limit.abort()), timeoutMs)
  try {
    await work(limit.signal)
  } catch (error) {
    throw limit.signal.aborted ? new TimedOut(`no answer within ${timeoutMs / 1_000} s`) : error
  } finally {
    clearTimeout(timer)
  }
}
