import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { ClientHttp2Stream, Http2Session, OutgoingHttpHeaders } from 'node:http2'
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js'

/**
 * The flow-control window per call and per connection (RFC 9113, 5.2). With the default of 64 KiB a reader waits for
 * the store after every hundred events; with a round trip of 1 ms that costs 150 ms for 20,000 events.
 */
const WINDOW_BYTES = 1024 * 1024

const CALL_CREATED = 'http2.client.stream.created'
type Created = { readonly stream: ClientHttp2Stream; readonly headers: OutgoingHttpHeaders }

const widened = new WeakSet<Http2Session>()

const widen = (message: unknown): void => {
  const { stream, headers } = message as Created
  const { session } = stream
  if (headers[':path'] !== streamsGrpc.StreamsService.read.path) return
  if (session === undefined || session.destroyed || widened.has(session)) return
  widened.add(session)
  session.settings({ initialWindowSize: WINDOW_BYTES })
  session.setLocalWindowSize(WINDOW_BYTES)
}

/**
 * The client has no option for it, so the connection is captured when Node reports a call on it by a diagnostics
 * channel. Without that report reads work, but slower. Returns a function that ends the capture.
 */
export const widenWindows = (): (() => void) => {
  const listener = (message: unknown): void => widen(message)
  subscribe(CALL_CREATED, listener)
  return () => void unsubscribe(CALL_CREATED, listener)
}
