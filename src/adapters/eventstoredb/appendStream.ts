import { status } from '@grpc/grpc-js'
import { type ClientHttp2Session, type ClientHttp2Stream, type IncomingHttpHeaders, constants } from 'node:http2'
import { Duplex } from 'node:stream'
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js'
import { MessageSplitter } from '../../grpc/framing.ts'
import { appendAnswerOf } from './appendMessages.ts'
import { callError, foreignResponse, resetError, statusIn } from './callStatus.ts'
import { CallEnded } from './errors.ts'
import type { Session } from './session.ts'

/** A BatchAppend call as one HTTP/2 request. The gRPC library sends each message in a frame and a system call of its own. */

/** Beyond this size of data that the connection has not taken, `write` returns false. */
const UNSENT_BYTES_MAX = 256 * 1024
const ANSWER_BYTES_MAX = 17 * 1024 * 1024
const { path: PATH } = streamsGrpc.StreamsService.batchAppend

/** Takes encoded messages, gives the answers that were complete at the same time as arrays. Errors are the gRPC library's. */
export class AppendStream extends Duplex {
  private readonly http2: ClientHttp2Session
  private readonly request: ClientHttp2Stream
  private readonly answers = new MessageSplitter(ANSWER_BYTES_MAX)
  private outcome: Error | 'ok' | undefined
  private cause: Error | undefined
  private hasResponse = false

  /** Throws if the session takes no more requests. */
  constructor({ http2, headers }: Session) {
    super({ readableObjectMode: true, writableHighWaterMark: UNSENT_BYTES_MAX, decodeStrings: false })
    this.http2 = http2
    this.request = http2.request({ ...headers, ':path': PATH, 'grpc-accept-encoding': 'identity' })
    this.request.on('response', response => this.onResponse(response))
    this.request.on('trailers', trailers => (this.outcome ??= statusIn(trailers)))
    this.request.on('data', (chunk: Buffer) => this.onData(chunk))
    this.request.on('error', error => (this.cause = error))
    this.request.on('end', () => this.onEnd())
    this.request.on('close', () => this.onClose())
  }

  /** False once the connection ends, also while answers of this call may still come. */
  isOpen(): boolean {
    return !this.destroyed && !this.writableEnded && !this.http2.closed && !this.http2.destroyed
  }

  override _read(): void {
    // Answers are pushed as they arrive: there is at most one for each append that waits.
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    // After an error the request closes, which destroys this stream with the reason.
    this.request.write(chunk, error => (error ? undefined : done()))
  }

  override _final(done: () => void): void {
    this.request.end(() => done())
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    if (!this.request.closed) this.request.close(constants.NGHTTP2_CANCEL)
    done(error)
  }

  private onResponse(headers: IncomingHttpHeaders): void {
    this.hasResponse = true
    this.outcome ??= statusIn(headers) ?? foreignResponse(headers)
    if (this.outcome !== undefined && this.outcome !== 'ok') this.destroy(this.outcome)
  }

  private onData(chunk: Buffer): void {
    if (this.destroyed) return
    try {
      const messages = this.answers.messagesWith(chunk)
      if (messages.length > 0) this.push(messages.map(appendAnswerOf))
    } catch (error) {
      this.destroy(callError(status.INTERNAL, error instanceof Error ? error.message : String(error)))
    }
  }

  private onEnd(): void {
    if (this.outcome === undefined) return
    if (this.outcome !== 'ok') this.destroy(this.outcome)
    else if (this.answers.isEmpty()) this.push(null)
    else this.destroy(callError(status.INTERNAL, 'The last message is incomplete.'))
  }

  /** The status may come after the end of the data. */
  private onClose(): void {
    if (this.destroyed) return
    this.outcome ??= this.endedWithoutStatus()
    this.onEnd()
  }

  /** Node reports resets also for the streams of a connection that was lost. */
  private endedWithoutStatus(): Error {
    if (this.http2.destroyed) return callError(status.UNAVAILABLE, this.cause?.message ?? 'The connection was lost.')
    const { rstCode } = this.request
    // The store has done nothing with a stream that it refuses (RFC 9113, 8.7).
    if (rstCode === constants.NGHTTP2_REFUSED_STREAM && !this.hasResponse) return new CallEnded('none')
    return resetError(rstCode)
  }
}
