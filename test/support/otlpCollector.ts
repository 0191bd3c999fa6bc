import { createServer, type RequestListener } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Certified } from './selfSigned.ts'

/** A span as OTLP has it in JSON; ids are hexadecimal. */
export type ExportedSpan = {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[]
}

/** A collector of what OpenTelemetry exports over HTTP. */
export type OtlpCollector = {
  readonly url: string
  /** All that was received; texts are unchanged in protobuf. */
  readonly text: () => string
  /** The spans that were received as `http/json`. */
  readonly spans: () => readonly ExportedSpan[]
  readonly close: () => void
}

type TraceRequest = { resourceSpans: { scopeSpans: { spans: ExportedSpan[] }[] }[] }

const spansIn = (body: Buffer): readonly ExportedSpan[] =>
  (JSON.parse(body.toString()) as TraceRequest).resourceSpans.flatMap(({ scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) => spans),
  )

/** With a certificate it is reached over TLS. */
export const openOtlpCollector = async (certified?: Certified): Promise<OtlpCollector> => {
  const chunks: Buffer[] = []
  const spans: ExportedSpan[] = []
  const receive: RequestListener = (req, res) => {
    const body: Buffer[] = []
    req.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      body.push(chunk)
    })
    req.on('end', () => {
      const isJson = req.headers['content-type']?.startsWith('application/json') === true
      if (isJson && req.url === '/v1/traces') spans.push(...spansIn(Buffer.concat(body)))
      res
        .writeHead(200, { 'content-type': req.headers['content-type'] ?? 'application/x-protobuf' })
        .end(isJson ? '{}' : '')
    })
  }
  const server = certified === undefined ? createServer(receive) : createSecureServer(certified, receive)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: certified === undefined ? `http://127.0.0.1:${port}` : `https://localhost:${port}`,
    text: () => Buffer.concat(chunks).toString('latin1'),
    spans: () => spans,
    close: () => void server.close(),
  }
}
