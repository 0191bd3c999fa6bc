import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Config } from '../settings/config.ts'
import { hostRefusal, systemCode, StartupError } from '../lib/startupError.ts'

/** GET /metrics for Prometheus, without authentication: by default for this machine alone, and apart from the API's port. */

export type OperatorPort = {
  readonly address: string
  readonly close: () => Promise<void>
}

const PATH = '/metrics'
const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'
const CLOSE_MAX_MS = 1_000

const PORT_REFUSALS: Readonly<Record<string, string>> = { EADDRINUSE: 'is in use', EACCES: 'is not permitted' }

const refusal = ({ host, port }: Place, error: unknown): unknown => {
  const ofPort = PORT_REFUSALS[systemCode(error) ?? '']
  if (ofPort !== undefined)
    return new StartupError(
      `The metrics port ${port} ${ofPort}. Set METRICS_PORT to another port, to 0 for any free one, or to off.`,
      error,
    )
  const ofHost = hostRefusal(error)
  return ofHost
    ? new StartupError(`METRICS_HOST=${host} ${ofHost}. Set it to an address of this machine.`, error)
    : error
}

/** Rejects with the system error. */
const listen = async (server: Server, port: number, host: string): Promise<void> => {
  server.listen(port, host)
  await once(server, 'listening')
}

/** A service that did not choose the port takes any other if it is in use, as beside another service on this machine. */
const listenOn = async (server: Server, place: Place): Promise<void> => {
  const { host, port, isDefault } = place
  try {
    await listen(server, port, host)
  } catch (error) {
    if (!isDefault || systemCode(error) !== 'EADDRINUSE') throw refusal(place, error)
    await listen(server, 0, host)
  }
}

type Place = NonNullable<Config['metrics']>

/** Port 0 is any. `text` makes the metrics for each request. Throws a StartupError for a port that cannot be used. */
export const openOperatorPort = async (place: Place, text: () => Promise<string>): Promise<OperatorPort> => {
  const server = createServer(async ({ method, url = '' }, res) => {
    const isMetrics = (method === 'GET' || method === 'HEAD') && url.split('?')[0] === PATH
    if (!isMetrics) return res.writeHead(404, { 'content-type': 'text/plain' }).end(`Only GET ${PATH} is here.\n`)
    try {
      const body = await text()
      return res.writeHead(200, { 'content-type': CONTENT_TYPE }).end(body)
    } catch {
      return res.writeHead(503).end()
    }
  })
  await listenOn(server, place)
  const { address, port: bound, family } = server.address() as AddressInfo
  const close = (): Promise<void> =>
    new Promise(resolve => {
      server.close(() => resolve())
      setTimeout(() => server.closeAllConnections(), CLOSE_MAX_MS).unref()
      server.closeIdleConnections()
    })
  return { address: `http://${family === 'IPv6' ? `[${address}]` : address}:${bound}${PATH}`, close }
}
