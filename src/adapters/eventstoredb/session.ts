import { readFileSync } from 'node:fs'
import { type ClientHttp2Session, connect, type OutgoingHttpHeaders } from 'node:http2'
import type { Encryption } from '../../lib/probe.ts'
import { type StoreAddress, storeAddressOf } from '../../lib/storeAddress.ts'

/**
 * A connection beside the official client's, to the same node, for calls without the layers of the gRPC library,
 * through which payments at 64 connections fall by 28 %.
 */
export type Session = {
  readonly http2: ClientHttp2Session
  /** The headers of each call, without its path. */
  readonly headers: OutgoingHttpHeaders
}

/** With the default window of 64 KiB a reader waits after every hundred events: 150 ms for 20,000 at 1 ms round trip. */
const WINDOW_BYTES = 1024 * 1024
/** As the client's own connections do. */
const PINGS = { intervalMs: 10_000, timeoutMs: 10_000 }

/** A file in the connection string; the client has read it once. */
const fileIn = (path: string | undefined): Buffer | undefined => (path === undefined ? undefined : readFileSync(path))

/** Pings regularly, and destroys a connection on which a ping stays unanswered, since it may be half open. */
export const keepAlive = (http2: ClientHttp2Session, { intervalMs, timeoutMs } = PINGS): void => {
  const ping = (): void => {
    if (http2.destroyed) return
    const timeout = setTimeout(() => http2.destroy(), timeoutMs)
    if (!http2.ping(() => clearTimeout(timeout))) clearTimeout(timeout)
  }
  const interval = setInterval(ping, intervalMs)
  http2.once('close', () => clearInterval(interval))
}

/** How a connection is encrypted; undefined for `tls=false`. */
export const encryptionOf = ({ setting }: StoreAddress): Encryption | undefined => {
  if (setting('tls') === 'false') return undefined
  const ca = fileIn(setting('tlscafile'))
  const identity = { cert: fileIn(setting('usercertfile')), key: fileIn(setting('userkeyfile')) }
  return { ...(ca && { ca }), ...identity }
}

/** Returns a function that connects to a node, `host:port`. Requests can be made at once; they fail if the node cannot be reached. */
export const sessionsOf = (connectionString: string, connectionName: string): ((node: string) => Session) => {
  const address = storeAddressOf(connectionString)
  const { credentials } = address
  const encryption = encryptionOf(address)
  const login = credentials && Buffer.from(`${credentials.user}:${credentials.password}`).toString('base64')
  const headers = {
    ':method': 'POST',
    'content-type': 'application/grpc',
    te: 'trailers',
    'connection-name': connectionName,
    // A follower may lag, and a node that was the leader keeps its connections: both would answer from the past. They
    // refuse such a call, and name the leader.
    'requires-leader': 'true',
    ...(encryption && login !== undefined && { authorization: `Basic ${login}` }),
  }
  return node => {
    const http2 = connect(`${encryption ? 'https' : 'http'}://${node}`, {
      settings: { initialWindowSize: WINDOW_BYTES, enablePush: false },
      ...encryption,
    })
    http2.once('connect', () => http2.setLocalWindowSize(WINDOW_BYTES))
    // Each call reports the failure; without a listener it would end the process.
    http2.on('error', () => undefined)
    keepAlive(http2)
    return { http2, headers }
  }
}
