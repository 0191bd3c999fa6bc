import type { ServerWritableStream } from '@grpc/grpc-js'
import type { ReadReq } from '@eventstore/db-client/generated/streams_pb.js'

/** A read call; its answers are bytes that are ready for the wire. */
export type ReadCall = ServerWritableStream<ReadReq, Uint8Array>

/** Sends messages to one reader no faster than it takes them. */
export type Outlet = {
  /** Aborts when the client cancelled or went away. */
  readonly gone: AbortSignal
  /** Resolves when there is room for more. */
  send(message: Uint8Array): Promise<void> | undefined
}

export const openOutlet = (call: ReadCall): Outlet => {
  const gone = new AbortController()
  // With a reason of its own: otherwise every read that ends pays for an error with a stack that nobody sees.
  const leave = (): void => gone.abort('gone')
  for (const event of ['cancelled', 'close', 'error']) call.on(event, leave)
  const room = (): Promise<void> =>
    new Promise(resolve => {
      const done = (): void => {
        call.off('drain', done)
        gone.signal.removeEventListener('abort', done)
        resolve()
      }
      call.on('drain', done)
      gone.signal.addEventListener('abort', done)
    })
  return {
    gone: gone.signal,
    send: message => (gone.signal.aborted || call.write(message) ? undefined : room()),
  }
}
