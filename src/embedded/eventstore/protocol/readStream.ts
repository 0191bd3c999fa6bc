import { status } from '@grpc/grpc-js'
import { type ServerHttp2Stream, constants } from 'node:http2'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import type { ReadReq } from '@eventstore/db-client/generated/streams_pb.js'
import { MessageSplitter, framed } from '../../../grpc/framing.ts'
import type { Log } from '../read.ts'
import type { ReadOutput } from './backpressureWriter.ts'
import { serveRead } from './read.ts'
import { type Failure, internalError } from './status.ts'

/**
 * The Read method on a stream of HTTP/2, by the protocol of gRPC ("gRPC over HTTP2"): one request, then responses in
 * batches. The gRPC library passes each call and each message through its layers.
 */

const HEADERS = {
  ':status': constants.HTTP_STATUS_OK,
  'content-type': 'application/grpc+proto',
  'grpc-accept-encoding': 'identity',
}

const textTrailersOf = ({ metadata }: Failure): Record<string, string> =>
  Object.fromEntries(Object.entries(metadata.getMap()).map(([name, value]) => [name, String(value)]))

/** The trailers of a call that ends with this status. */
const trailersOf = (failure: Failure | undefined): Record<string, string> =>
  failure === undefined
    ? { 'grpc-status': String(status.OK) }
    : {
        ...textTrailersOf(failure),
        'grpc-status': String(failure.code),
        'grpc-message': encodeURI(failure.details),
      }

/** Sends the head of the response at once. */
export const outputOn = (stream: ServerHttp2Stream): ReadOutput => {
  let trailers = trailersOf(undefined)
  stream.respond(HEADERS, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers(trailers))
  return {
    onGone: callback => void stream.on('close', callback),
    write: (batch, onSent) => {
      if (stream.writable) stream.write(framed(batch), onSent)
    },
    end: failure => {
      trailers = trailersOf(failure)
      stream.end()
    },
  }
}

/** The only message of the request. Throws if there is none, another one, or an incomplete one. */
const requestIn = (messages: readonly Buffer[], isComplete: boolean): ReadReq => {
  const [message, ...others] = messages
  if (message === undefined || others.length > 0 || !isComplete) throw new Error('A read has one request.')
  return streams.ReadReq.deserializeBinary(message)
}

/** Serves one call. */
export const serveReadStream = (log: Log, messageBytesMax: number) => {
  return (stream: ServerHttp2Stream): void => {
    const splitter = new MessageSplitter(messageBytesMax)
    const messages: Buffer[] = []
    const fail = (error: unknown): void => {
      const details = error instanceof Error ? error.message : String(error)
      stream.removeAllListeners('data').removeAllListeners('end').resume()
      outputOn(stream).end(internalError(details))
    }
    stream.on('error', () => undefined)
    stream.on('data', (chunk: Buffer) => {
      try {
        messages.push(...splitter.messagesWith(chunk))
      } catch (error) {
        fail(error)
      }
    })
    stream.on('end', () => {
      if (stream.closed || stream.destroyed) return
      try {
        const request = requestIn(messages, splitter.isEmpty())
        serveRead(log, request.getOptions(), outputOn(stream))
      } catch (error) {
        fail(error)
      }
    })
  }
}
