import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { ClientHttp2Session, ClientHttp2Stream, OutgoingHttpHeaders } from 'node:http2'
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js'

/**
 * The HTTP/2 sessions that the official client has opened, found through Node's diagnostics channel when the client makes
 * a read or an append. The client discovers the node, authenticates, and keeps the session alive; later reads on
 * the same session can then be made without the layers of its gRPC library (readCall.ts).
 */

/**
 * The flow-control window per call and per connection (RFC 9113, 5.2). With the default of 64 KiB a reader waits for
 * the store after every hundred events; with a round trip of 1 ms that costs 150 ms for 20,000 events.
 */
const WINDOW_BYTES = 1024 * 1024

const CALL_CREATED = 'http2.client.stream.created'
type Created = { readonly stream: ClientHttp2Stream; readonly headers: OutgoingHttpHeaders }

export type ReadSession = {
  readonly http2: ClientHttp2Session
  /** The headers of each read of this connection. */
  readonly headers: OutgoingHttpHeaders
}

const CALLS: ReadonlySet<unknown> = new Set([
  streamsGrpc.StreamsService.read.path,
  streamsGrpc.StreamsService.batchAppend.path,
])
/** The client gives each call the name of its connection, a UUID unless the connection string has one. */
const CONNECTION_NAME = 'connection-name'
/** Headers of a connection. The others, such as a trace context, belong to one call. */
const KEPT_HEADERS = [
  ':authority',
  ':method',
  ':scheme',
  'authorization',
  'content-type',
  'te',
  'user-agent',
  CONNECTION_NAME,
]

const readHeadersOf = (headers: OutgoingHttpHeaders): OutgoingHttpHeaders => ({
  ...Object.fromEntries(KEPT_HEADERS.flatMap(name => (headers[name] === undefined ? [] : [[name, headers[name]]]))),
  ':path': streamsGrpc.StreamsService.read.path,
})

const sessions = new Map<string, ReadSession>()

const rememberSession = (message: unknown): void => {
  const { stream, headers } = message as Created
  const { session: http2 } = stream
  const name = headers[CONNECTION_NAME]
  if (!CALLS.has(headers[':path']) || typeof name !== 'string') return
  if (http2 === undefined || http2.closed || http2.destroyed || sessions.get(name)?.http2 === http2) return
  http2.settings({ initialWindowSize: WINDOW_BYTES })
  http2.setLocalWindowSize(WINDOW_BYTES)
  sessions.set(name, { http2: http2 as ClientHttp2Session, headers: readHeadersOf(headers) })
}

/** The session on which the connection of this name has made its last call; undefined when it takes no more calls. */
export const readSessionOf = (connectionName: string): ReadSession | undefined => {
  const session = sessions.get(connectionName)
  return session === undefined || session.http2.closed || session.http2.destroyed ? undefined : session
}

/** The next read is then made by the client itself, on a session that it opens. */
export const forgetReadSession = (connectionName: string): void => void sessions.delete(connectionName)

/**
 * Closes the connection to the store, and resolves when the gRPC library knows. The library shares a connection among
 * clients of one address, so that a new client alone would continue on that of the old one, which may be half open.
 */
export const destroyReadSession = async (connectionName: string): Promise<void> => {
  const http2 = sessions.get(connectionName)?.http2
  sessions.delete(connectionName)
  if (http2 === undefined || http2.destroyed) return
  const closed = new Promise<void>(resolve => http2.once('close', resolve))
  http2.destroy()
  await closed
}

/**
 * Observes the sessions that clients open, and returns a function that ends the observation. If Node reported none, all
 * reads would be the client's own: correct, but slower.
 */
export const observeReadSessions = (): (() => void) => {
  const listener = (message: unknown): void => rememberSession(message)
  subscribe(CALL_CREATED, listener)
  return () => void unsubscribe(CALL_CREATED, listener)
}
