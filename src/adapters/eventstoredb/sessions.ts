import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { ClientHttp2Session, ClientHttp2Stream, OutgoingHttpHeaders } from 'node:http2'
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js'

/**
 * The HTTP/2 sessions that the official client has opened, found through Node's diagnostics channel when the client makes
 * a read or an append. The client discovers the node, authenticates, and keeps the session alive; later calls on the same
 * session can then be made without the layers of its gRPC library (readCall.ts, appendStream.ts).
 */

/**
 * The flow-control window per call and per connection (RFC 9113, 5.2). With the default of 64 KiB a reader waits for
 * the store after every hundred events; with a round trip of 1 ms that costs 150 ms for 20,000 events.
 */
const WINDOW_BYTES = 1024 * 1024

const CALL_CREATED = 'http2.client.stream.created'
type Created = { readonly stream: ClientHttp2Stream; readonly headers: OutgoingHttpHeaders }

export type Session = {
  readonly http2: ClientHttp2Session
  /** The headers of each call of this connection, without its path. */
  readonly headers: OutgoingHttpHeaders
}

const { path: BATCH_APPEND } = streamsGrpc.StreamsService.batchAppend
const CALLS: ReadonlySet<unknown> = new Set([streamsGrpc.StreamsService.read.path, BATCH_APPEND])
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
  'requires-leader',
  CONNECTION_NAME,
]

const headersOf = (headers: OutgoingHttpHeaders): OutgoingHttpHeaders =>
  Object.fromEntries(KEPT_HEADERS.flatMap(name => (headers[name] === undefined ? [] : [[name, headers[name]]])))

/** By the name of the connection: the session of its last call. */
const sessions = new Map<string, Session>()
/** By the name of the connection: the session of its last append call. A read may have been made on another one. */
const appendSessions = new Map<string, Session>()

const rememberSession = (message: unknown): void => {
  const { stream, headers } = message as Created
  const { session: http2 } = stream
  const { [CONNECTION_NAME]: name, ':path': path } = headers
  if (!CALLS.has(path) || typeof name !== 'string') return
  if (http2 === undefined || http2.closed || http2.destroyed) return
  const previous = sessions.get(name)
  const session = previous?.http2 === http2 ? previous : opened(http2 as ClientHttp2Session, headers)
  sessions.set(name, session)
  if (path === BATCH_APPEND) appendSessions.set(name, session)
}

const opened = (http2: ClientHttp2Session, headers: OutgoingHttpHeaders): Session => {
  http2.settings({ initialWindowSize: WINDOW_BYTES })
  http2.setLocalWindowSize(WINDOW_BYTES)
  return { http2, headers: headersOf(headers) }
}

const usable = (session: Session | undefined): Session | undefined =>
  session === undefined || session.http2.closed || session.http2.destroyed ? undefined : session

/** The session on which the connection of this name has made its last call; undefined when it takes no more calls. */
export const sessionOf = (connectionName: string): Session | undefined => usable(sessions.get(connectionName))

/** The same for its last append call since `forgetAppendSession`. */
export const appendSessionOf = (connectionName: string): Session | undefined =>
  usable(appendSessions.get(connectionName))

/** Called before the client opens an append call: only the session of that call leads to the node that it has chosen. */
export const forgetAppendSession = (connectionName: string): void => void appendSessions.delete(connectionName)

/** The next calls are then made by the client itself, on a session that it opens. */
export const forgetSessions = (connectionName: string): void => {
  sessions.delete(connectionName)
  appendSessions.delete(connectionName)
}

/**
 * Closes the connections to the store, and resolves when the gRPC library knows. The library shares a connection among
 * clients of one address, so a new client alone would continue on that of the old one, which may be half open.
 */
export const destroySessions = async (connectionName: string): Promise<void> => {
  const pair = [sessions.get(connectionName), appendSessions.get(connectionName)]
  forgetSessions(connectionName)
  await Promise.all(pair.flatMap(session => (session === undefined ? [] : [destroyed(session.http2)])))
}

const destroyed = async (http2: ClientHttp2Session): Promise<void> => {
  if (http2.destroyed) return
  const closed = new Promise<void>(resolve => http2.once('close', resolve))
  http2.destroy()
  await closed
}

/**
 * Observes the sessions that clients open, and returns a function that ends the observation. If Node reported none, all
 * calls would be the client's own: correct, but slower.
 */
export const observeSessions = (): (() => void) => {
  const listener = (message: unknown): void => rememberSession(message)
  subscribe(CALL_CREATED, listener)
  return () => void unsubscribe(CALL_CREATED, listener)
}
