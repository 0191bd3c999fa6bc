import { Metadata, status } from '@grpc/grpc-js'
import { type ClientHttp2Stream, type IncomingHttpHeaders, constants } from 'node:http2'
import { Transform, type TransformCallback } from 'node:stream'
import { type Answer, answerOf } from './answers.ts'
import type { ReadSession } from './readSessions.ts'

/**
 * A call of the store's Read method as one HTTP/2 request on a session of the official client, by the protocol of gRPC
 * ("gRPC over HTTP2"). The answers of one frame are passed on together; the gRPC library passes each of them through
 * its layers alone, which costs more than decoding it.
 */

/** In front of each message: a flag (compressed or not) and the length of the message in four bytes. */
const PREFIX_BYTES = 5
const LENGTH_AT = 1
const OK = String(status.OK)

const prefixed = (message: Uint8Array): Buffer => {
  const bytes = Buffer.alloc(PREFIX_BYTES + message.length)
  bytes.writeUInt32BE(message.length, LENGTH_AT)
  bytes.set(message, PREFIX_BYTES)
  return bytes
}

/** The shape of the gRPC library's errors, which the official client translates. */
type CallError = Error & { readonly code: status; readonly details: string; readonly metadata: Metadata }

const callError = (code: status, details: string, metadata = new Metadata()): CallError =>
  Object.assign(new Error(`${code} ${status[code]}: ${details}`), { code, details, metadata })

/** A malformed encoding must not discard the status, so that the text is then returned as it is. */
const percentDecoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const statusIn = (headers: IncomingHttpHeaders): CallError | 'ok' | undefined => {
  const code = headers['grpc-status']
  if (code === undefined) return undefined
  if (code === OK) return 'ok'
  const details = percentDecoded(String(headers['grpc-message'] ?? ''))
  return callError(Number(code), details, Metadata.fromHttp2Headers(headers))
}

/**
 * The answers of a call, in arrays; each array holds those that were complete at the same time. Errors are those of the
 * gRPC library: `UNAVAILABLE` for a connection that is lost, `INTERNAL` for bytes that are no answers.
 */
export class ReadCall extends Transform {
  private readonly request: ClientHttp2Stream
  private held: Buffer[] = []
  private heldBytes = 0
  private neededBytes = PREFIX_BYTES
  private outcome: CallError | 'ok' | undefined

  /** Throws if the session takes no more requests. */
  constructor(session: ReadSession, message: Uint8Array) {
    super({ readableObjectMode: true })
    this.request = session.http2.request(session.headers)
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
      const answers = this.answersWith(chunk)
      done(undefined, answers.length === 0 ? undefined : answers)
    } catch (error) {
      done(callError(status.INTERNAL, error instanceof Error ? error.message : String(error)))
    }
  }

  override _flush(done: TransformCallback): void {
    if (this.outcome === undefined) done(callError(status.UNAVAILABLE, 'The call ended without a status.'))
    else if (this.outcome !== 'ok') done(this.outcome)
    else if (this.heldBytes > 0) done(callError(status.INTERNAL, 'The last message is incomplete.'))
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

  private answersWith(chunk: Buffer): Answer[] {
    this.held.push(chunk)
    this.heldBytes += chunk.length
    if (this.heldBytes < this.neededBytes) return []
    const bytes = this.held.length === 1 ? chunk : Buffer.concat(this.held, this.heldBytes)
    const answers: Answer[] = []
    let at = 0
    for (; bytes.length - at >= PREFIX_BYTES; at += this.neededBytes) {
      this.neededBytes = PREFIX_BYTES + bytes.readUInt32BE(at + LENGTH_AT)
      if (bytes[at] !== 0) throw new Error('A message is compressed, which was not asked for.')
      if (bytes.length - at < this.neededBytes) break
      answers.push(answerOf(bytes.subarray(at + PREFIX_BYTES, at + this.neededBytes)))
    }
    if (bytes.length - at < PREFIX_BYTES) this.neededBytes = PREFIX_BYTES
    this.held = at === bytes.length ? [] : [bytes.subarray(at)]
    this.heldBytes = bytes.length - at
    return answers
  }
}
