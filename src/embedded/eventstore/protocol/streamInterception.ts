import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { type IncomingHttpHeaders, type ServerHttp2Session, type ServerHttp2Stream, constants } from 'node:http2'

/** Streams of HTTP/2 that are served without the gRPC library, on the port that the library's server has opened. */

const STREAM_CREATED = 'http2.server.stream.created'
type Created = { readonly stream: ServerHttp2Stream }
type StreamListener = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, ...rest: unknown[]) => void

export type Interception = {
  readonly port: number
  /** By the path of a method: its plain calls are served by this function. */
  readonly methods: ReadonlyMap<unknown, (stream: ServerHttp2Stream) => void>
}

/** Calls with a deadline or with compressed messages are left to the library. */
const isPlainCall = (headers: IncomingHttpHeaders): boolean =>
  headers[':method'] === constants.HTTP2_METHOD_POST &&
  headers['content-type']?.startsWith('application/grpc') === true &&
  headers['grpc-timeout'] === undefined &&
  (headers['grpc-encoding'] ?? 'identity') === 'identity'

/**
 * Serves the plain calls of these methods on this port from now on, and returns a function that ends this for new sessions. Node
 * reports a stream before its session does, so that the session's listeners can be replaced in time. If Node reported
 * none, the library would serve them: correct, but slower.
 */
export const interceptStreams = ({ port, methods }: Interception): (() => void) => {
  const seen = new WeakSet<object>()
  const intercept = (session: ServerHttp2Session): void => {
    seen.add(session)
    if (session.socket.localPort !== port) return
    const library = session.listeners('stream') as StreamListener[]
    session.removeAllListeners('stream')
    session.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, ...rest: unknown[]) => {
      const serve = isPlainCall(headers) ? methods.get(headers[':path']) : undefined
      if (serve !== undefined) serve(stream)
      else for (const listener of library) Reflect.apply(listener, session, [stream, headers, ...rest])
    })
  }
  const listener = (message: unknown): void => {
    const { session } = (message as Created).stream
    if (session !== undefined && !seen.has(session)) intercept(session as ServerHttp2Session)
  }
  subscribe(STREAM_CREATED, listener)
  return () => void unsubscribe(STREAM_CREATED, listener)
}
