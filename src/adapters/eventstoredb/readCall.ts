import { status } from '@grpc/grpc-js'
import { type ClientHttp2Stream, type IncomingHttpHeaders, constants } from 'node:http2'
import { Transform, type TransformCallback } from 'node:stream'
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js'
import { MessageSplitter, prefixed } from '../../grpc/framing.ts'
import type { Decode } from './answers.ts'
import { type CallError, callError, statusIn } from './callStatus.ts'
import type { Session } from './session.ts'

/**
 * A Read call as one HTTP/2 request, whose answers of one frame are passed on together. The gRPC library passes each
 * through its layers alone, which costs more than decoding it.
 */

const ANSWER_BYTES_MAX = 17 * 1024 * 1024
const { path: PATH } = streamsGrpc.StreamsService.read

/** Arrays of answers that were complete together. Errors: `UNAVAILABLE` for a lost connection, `INTERNAL` for other bytes. */
export class ReadCall extends Transform {
  private readonly request: ClientHttp2Stream
  private readonly answers = new MessageSplitter(ANSWER_BYTES_MAX)
  private outcome: CallError | 'ok' | undefined

  private readonly decode: Decode

  /** Throws if the session takes no more requests. */
  constructor(session: Session, message: Uint8Array, decode: Decode) {
    super({ readableObjectMode: true })
    this.decode = decode
    this.request = session.http2.request({ ...session.headers, ':path': PATH })
    const takeStatus = (headers: IncomingHttpHeaders): void => void (this.outcome ??= statusIn(headers))
    this.request.on('response', takeStatus).on('trailers', takeStatus)
    this.request.on('error', error => this.destroy(callError(status.UNAVAILABLE, error.message)))
    this.request.on('close', () => this.onClose())
    this.request.pipe(this)
    this.request.end(prefixed(message))
  }

  cancel(): void {
    this.destroy()
  }

  override _transform(chunk: Buffer, _: BufferEncoding, done: TransformCallback): void {
    try {
      const answers = this.answers.messagesWith(chunk).map(message => this.decode(message))
      done(undefined, answers.length === 0 ? undefined : answers)
    } catch (error) {
      done(callError(status.INTERNAL, error instanceof Error ? error.message : String(error)))
    }
  }

  override _flush(done: TransformCallback): void {
    if (this.outcome === undefined) done(callError(status.UNAVAILABLE, 'The call ended without a status.'))
    else if (this.outcome !== 'ok') done(this.outcome)
    else if (!this.answers.isEmpty()) done(callError(status.INTERNAL, 'The last message is incomplete.'))
    else done()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    // Calls that have ended are left alone: a server that receives many resets may take them for an attack.
    if (!this.request.closed && !this.request.readableEnded) this.request.close(constants.NGHTTP2_CANCEL)
    done(error)
  }

  /** Handles the end of the HTTP/2 stream. Without a status the connection was lost; with one, data may still be unread. */
  private onClose(): void {
    if (!this.request.readableEnded && this.outcome === undefined)
      this.destroy(callError(status.UNAVAILABLE, 'The connection was lost.'))
  }
}
