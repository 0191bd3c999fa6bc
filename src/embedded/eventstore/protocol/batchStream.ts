import { status } from '@grpc/grpc-js'
import { type ServerHttp2Stream, constants } from 'node:http2'
import { MessageSplitter } from '../../../grpc/framing.ts'
import type { Writer } from '../writer.ts'
import { BatchAppends } from './batchAppend.ts'
import { readBatchRequest } from './batchRequest.ts'
import { responsesWithPrefixes } from './batchResponse.ts'

/**
 * The BatchAppend method on a stream of HTTP/2, by the protocol of gRPC ("gRPC over HTTP2"). The gRPC library passes each
 * message through its layers alone, and sends each response in a write of its own.
 */

const HEADERS = {
  ':status': constants.HTTP_STATUS_OK,
  'content-type': 'application/grpc+proto',
  'grpc-accept-encoding': 'identity',
}

/** Serves one call. Long because its handlers share the call's trailers. */
export const serveBatchAppend = (writer: Writer, messageBytesMax: number) => {
  return (stream: ServerHttp2Stream): void => {
    let trailers: Record<string, string> = { 'grpc-status': String(status.OK) }
    const requests = new MessageSplitter(messageBytesMax)
    const appends = new BatchAppends(writer, {
      respond: responses => {
        if (stream.writable) stream.write(responsesWithPrefixes(responses))
      },
      pause: () => void stream.pause(),
      resume: () => void stream.resume(),
      end: () => void stream.end(),
    })
    const fail = (error: unknown): void => {
      const reason = error instanceof Error ? error.message : String(error)
      trailers = { 'grpc-status': String(status.INTERNAL), 'grpc-message': encodeURIComponent(reason) }
      stream.removeAllListeners('data').removeAllListeners('end').resume()
      stream.end()
    }
    stream.respond(HEADERS, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers(trailers))
    stream.on('error', () => undefined)
    stream.on('data', (chunk: Buffer) => {
      try {
        for (const message of requests.messagesWith(chunk)) appends.receive(readBatchRequest(message))
      } catch (error) {
        fail(error)
      }
    })
    stream.on('end', () => {
      if (requests.isEmpty()) appends.end()
      else fail('The last message is incomplete.')
    })
  }
}
