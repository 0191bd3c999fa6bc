import { ServerInterceptingCall, type ServerInterceptor, type ServerWritableStream } from '@grpc/grpc-js'
import type { ReadReq } from '@eventstore/db-client/generated/streams_pb.js'
import type { Failure } from './status.ts'

/** Messages that go out together. Each is bytes that are ready for the wire. */
type Batch = readonly Uint8Array[]

/** A read call; its answers are written by batches, which `writesBatches` takes apart. */
export type ReadCall = ServerWritableStream<ReadReq, Batch>

const BATCH_BYTES = 64 * 1024
/** A reader that does not read has no more than this waiting for it here. */
const UNSENT_BYTES_MAX = 256 * 1024

/** Sends messages to one reader no faster than it takes them. */
export type Outlet = {
  /** Aborts when the client cancelled or went away. */
  readonly gone: AbortSignal
  /** Sends it with those before and behind it, at the end of this tick at the latest. Resolves when there is room for more. */
  send(message: Uint8Array): Promise<void> | undefined
  /** The same for an answer that may have to be looked up first. */
  sendSoon(message: Buffer | Promise<Buffer>): Promise<void> | undefined
  /** Ends the call once everything is sent; with this status if there is one. */
  end(failure: Failure | undefined): void
}

/** Collects messages into batches and writes these; `leave` lets a sender go that waits for room. */
const batchesOn = (call: ReadCall, gone: AbortSignal) => {
  let batch: Uint8Array[] = []
  let batchBytes = 0
  let unsentBytes = 0
  let makeRoom: (() => void) | undefined
  const flush = (): void => {
    if (batch.length === 0 || gone.aborted) return
    const bytes = batchBytes
    unsentBytes += bytes
    call.write(batch, () => {
      unsentBytes -= bytes
      if (unsentBytes < UNSENT_BYTES_MAX) makeRoom?.()
    })
    batch = []
    batchBytes = 0
  }
  const send = (message: Uint8Array): Promise<void> | undefined => {
    if (gone.aborted) return undefined
    // The next tick comes when the sender waits for something else than its own promises.
    if (batch.push(message) === 1) process.nextTick(flush)
    batchBytes += message.length
    if (batchBytes < BATCH_BYTES) return undefined
    flush()
    if (unsentBytes < UNSENT_BYTES_MAX || gone.aborted) return undefined
    return new Promise(resolve => (makeRoom = resolve))
  }
  return { flush, send, leave: (): void => makeRoom?.() }
}

export const openOutlet = (call: ReadCall): Outlet => {
  const gone = new AbortController()
  const { flush, send, leave } = batchesOn(call, gone.signal)
  for (const event of ['cancelled', 'close', 'error'])
    call.on(event, () => {
      // With a reason of its own: otherwise every read that ends pays for an error with a stack that nobody sees.
      gone.abort('gone')
      leave()
    })
  return {
    gone: gone.signal,
    send,
    sendSoon: message => (message instanceof Promise ? message.then(send) : send(message)),
    end: failure => {
      if (gone.signal.aborted) return
      flush()
      if (failure === undefined) call.end()
      else call.emit('error', failure)
    },
  }
}

/**
 * A call hands each message to its connection only when the one before has been sent: a system call, a frame and a turn of
 * the event loop for each event. The messages of a batch are handed over at once and share them.
 */
class BatchingCall extends ServerInterceptingCall {
  override sendMessage(batch: Batch, sent: () => void): void {
    for (const [n, message] of batch.entries())
      super.sendMessage(message, n === batch.length - 1 ? sent : () => undefined)
  }
}

/** For calls of the method at this path, whose handler writes batches. */
export const writesBatches =
  (path: string): ServerInterceptor =>
  (method, call) =>
    method.path === path ? new BatchingCall(call) : new ServerInterceptingCall(call)
