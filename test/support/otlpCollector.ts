import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A collector of what OpenTelemetry exports over HTTP; texts are unchanged in protobuf. */
export type OtlpCollector = { readonly url: string; readonly text: () => string; readonly close: () => void }

export const openOtlpCollector = async (): Promise<OtlpCollector> => {
  const bodies: Buffer[] = []
  const server = createServer((req, res) => {
    req.on('data', (chunk: Buffer) => bodies.push(chunk))
    req.on('end', () => res.writeHead(200, { 'content-type': 'application/x-protobuf' }).end())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    text: () => Buffer.concat(bodies).toString('latin1'),
    close: () => void server.close(),
  }
}
