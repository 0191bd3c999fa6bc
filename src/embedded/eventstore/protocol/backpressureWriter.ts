import { ServerInterceptingCall, type ServerInterceptor, type ServerWritableStream } from '@grpc/grpc-js'
import type { ReadReq } from '@eventstore/db-client/generated/streams_pb.js'
import type { Failure } from './status.ts'

/** Responses of read calls, written in batches and no faster than the client reads. */

/** Encoded messages that are sent together. */
export type Batch = readonly Uint8Array[]

/** The sides of a call that its writer needs. */
export type ReadOutput = {
  /** Called when the client cancelled or disconnected, and after the end. */
  onGone(callback: () => void): void
  write(batch: Batch, onSent: () => void): void
  /** Ends the call, with this status if there is one. */
  end(failure: Failure | undefined): void
}

/** A read call whose responses are written in batches, which `writesBatches` takes apart. */
export type ReadCall = ServerWritableStream<ReadReq, Batch>

const BATCH_BYTES = 64 * 1024
/** The limit of unsent data for a reader that does not read. */
const UNSENT_BYTES_MAX = 256 * 1024

/** A writer with backpressure: sends messages to one reader no faster than it reads. */
export type BackpressureWriter = {
  /** Aborts when the client cancelled or disconnected. */
  readonly gone: AbortSignal
  /**
   * Sends the message in a batch, at the end of this tick at the latest. Returns a promise of free capacity, or
   * undefined if there is some.
   */
  send(message: Uint8Array): Promise<void> | undefined
  /** The same for a message that may need a lookup first. */
  sendSoon(message: Buffer | Promise<Buffer>): Promise<void> | undefined
  /** Ends the call after everything is sent, with this status if there is one. */
  end(failure: Failure | undefined): void
}

/** Collects messages into batches and writes them; `releaseSender` releases a sender that waits for capacity. */
const batchesOn = (output: ReadOutput, gone: AbortSignal) => {
  let batch: Uint8Array[] = []
  let batchBytes = 0
  let unsentBytes = 0
  let makeRoom: (() => void) | undefined
  const flush = (): void => {
    if (batch.length === 0 || gone.aborted) return
    const bytes = batchBytes
    unsentBytes += bytes
    output.write(batch, () => {
      unsentBytes -= bytes
      if (unsentBytes < UNSENT_BYTES_MAX) makeRoom?.()
    })
    batch = []
    batchBytes = 0
  }
  const send = (message: Uint8Array): Promise<void> | undefined => {
    if (gone.aborted) return undefined
    // The flush runs after promises that are resolved already, so a sender that waits for those only can fill the batch.
    if (batch.push(message) === 1) process.nextTick(flush)
    batchBytes += message.length
    if (batchBytes < BATCH_BYTES) return undefined
    flush()
    if (unsentBytes < UNSENT_BYTES_MAX || gone.aborted) return undefined
    return new Promise(resolve => (makeRoom = resolve))
  }
  return { flush, send, releaseSender: (): void => makeRoom?.() }
}

export const openBackpressureWriter = (output: ReadOutput): BackpressureWriter => {
  const gone = new AbortController()
  const { flush, send, releaseSender } = batchesOn(output, gone.signal)
  output.onGone(() => {
    // With an explicit reason, since the default reason is an error whose stack trace would cost time at the end of every
    // read.
    gone.abort('gone')
    releaseSender()
  })
  return {
    gone: gone.signal,
    send,
    sendSoon: message => (message instanceof Promise ? message.then(send) : send(message)),
    end: failure => {
      if (gone.signal.aborted) return
      flush()
      output.end(failure)
    },
  }
}

/** The output of a call of the gRPC library. */
export const outputOf = (call: ReadCall): ReadOutput => ({
  onGone: callback => {
    for (const event of ['cancelled', 'close', 'error']) call.on(event, callback)
  },
  write: (batch, onSent) => void call.write(batch, onSent),
  end: failure => void (failure === undefined ? call.end() : call.emit('error', failure)),
})

/**
 * A call passes each message to its connection only after the one before was sent: a system call, a frame and a turn of
 * the event loop per event. The messages of a batch are passed together and share these.
 */
class BatchingCall extends ServerInterceptingCall {
  override sendMessage(batch: Batch, sent: () => void): void {
    for (const [n, message] of batch.entries())
      super.sendMessage(message, n === batch.length - 1 ? sent : () => undefined)
  }
}

/** An interceptor for the method at this path, whose handler writes batches. */
export const writesBatches =
  (path: string): ServerInterceptor =>
  (method, call) =>
    method.path === path ? new BatchingCall(call) : new ServerInterceptingCall(call)
