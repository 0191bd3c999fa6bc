import { once } from 'node:events'
import { createServer, request as openRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createIssuer, type IssuerOptions } from './issuer.ts'

/** Log-ins are in the memory of the primary, which serves them on a loopback port; API processes forward requests to it. */

const HOST = '127.0.0.1'
/** Of the client, as the API process knows it. */
const ADDRESS_HEADER = 'x-forwarded-for'
/** They are of one connection. */
const CONNECTION_HEADERS = ['connection', 'keep-alive']

export type IssuerServer = { readonly port: number; readonly close: () => Promise<void> }

export const startIssuerServer = async (options: Omit<IssuerOptions, 'addressOf'>): Promise<IssuerServer> => {
  const addressOf = ({ headers }: IncomingMessage): string => String(headers[ADDRESS_HEADER])
  const { handler } = await createIssuer({ ...options, addressOf })
  const mount = new URL(options.issuer).pathname
  const server = createServer((request, response) => {
    const { url = '' } = request
    // As Express has it: the provider finds its mount path by the difference.
    const mounted = Object.assign(request, { originalUrl: url, url: url.slice(mount.length) })
    handler(mounted, response, () => response.destroy())
  })
  server.listen(0, HOST)
  await once(server, 'listening')
  const close = async (): Promise<void> => {
    server.close()
    server.closeAllConnections()
  }
  return { port: (server.address() as AddressInfo).port, close }
}

export type Forwarding = Required<Pick<IssuerOptions, 'issuer' | 'addressOf'>> & { readonly port: number }

/** Sends the request to the issuer's process. Resolves when its response begins. */
export const forwardTo =
  ({ port, issuer, addressOf }: Forwarding) =>
  (request: IncomingMessage, response: ServerResponse): Promise<void> =>
    new Promise((resolve, reject) => {
      const { method, url = '' } = request
      const path = `${new URL(issuer).pathname}${url}`
      const headers = { ...request.headers, [ADDRESS_HEADER]: addressOf(request), connection: 'close' }
      const forwarded = openRequest({ host: HOST, port, method, path, headers, agent: false }, answer => {
        const own = Object.entries(answer.headers).filter(([name]) => !CONNECTION_HEADERS.includes(name))
        response.writeHead(answer.statusCode ?? 500, Object.fromEntries(own))
        answer.pipe(response)
        resolve()
      })
      request.pipe(forwarded.on('error', reject))
    })
