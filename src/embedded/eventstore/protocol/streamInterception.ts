import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { IncomingHttpHeaders, ServerHttp2Session, ServerHttp2Stream } from 'node:http2'

/** Streams of HTTP/2 that are served without the gRPC library, on the port that the library's server has opened. */

const STREAM_CREATED = 'http2.server.stream.created'
type Created = { readonly stream: ServerHttp2Stream }
type StreamListener = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, ...rest: unknown[]) => void

export type Interception = {
  readonly port: number
  readonly isWanted: (headers: IncomingHttpHeaders) => boolean
  readonly serve: (stream: ServerHttp2Stream) => void
}

/**
 * Serves the wanted streams of this port from now on, and returns a function that ends this for new sessions. Node
 * reports a stream before its session does, so that the session's listeners can be replaced in time. If Node reported
 * none, the library would serve them: correct, but slower.
 */
export const interceptStreams = ({ port, isWanted, serve }: Interception): (() => void) => {
  const seen = new WeakSet<object>()
  const intercept = (session: ServerHttp2Session): void => {
    seen.add(session)
    if (session.socket.localPort !== port) return
    const library = session.listeners('stream') as StreamListener[]
    session.removeAllListeners('stream')
    session.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, ...rest: unknown[]) => {
      if (isWanted(headers)) serve(stream)
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
