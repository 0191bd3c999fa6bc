import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createIssuer } from '../../src/embedded/issuer/issuer.ts'
import { startEmbeddedServices } from '../../src/embedded/startEmbedded.ts'
import type { CleanupStack } from '../../src/lib/cleanupStack.ts'
import { startBroker } from '../support/preparedBroker.ts'
import { whyNoBroker } from '../support/programs.ts'

/** The servers that both builds share: event store, Postgres, an issuer, and Kafka where it can be started. */

export const AUDIENCE = 'payment-ledger'

export type Servers = {
  readonly issuer: string
  /** Settings that name the servers, for instances and commands. */
  readonly settings: Readonly<Record<string, string>>
  readonly hasKafka: boolean
}

const serveIssuer = async (dataDir: string, cleanup: CleanupStack): Promise<string> => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanup.defer(async () => {
    server.closeAllConnections()
    server.close()
  })
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}/oauth`
  const { handler, metadata } = await createIssuer({ issuer, audience: AUDIENCE, dataDir })
  server.on('request', (request, response) => {
    const { url = '' } = request
    if (url === '/.well-known/oauth-authorization-server/oauth')
      return void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(metadata))
    // As Express has it: the provider finds its mount path by the difference.
    const mounted = Object.assign(request, { originalUrl: url, url: url.slice('/oauth'.length) })
    handler(mounted, response, () => void response.writeHead(404).end())
  })
  return issuer
}

export type ServersOptions = {
  readonly dataDir: string
  readonly withKafka: boolean
  /** Called when the event store or Postgres has ended for good. */
  readonly fail: (reason: Error) => void
}

export const startServers = async (
  { dataDir, withKafka, fail }: ServersOptions,
  cleanup: CleanupStack,
): Promise<Servers> => {
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  const stores = await startEmbeddedServices({
    dataDir,
    database: true,
    eventStore: true,
    log: () => undefined,
    onExit: fail,
  })
  cleanup.defer(stores.stop)
  const issuer = await serveIssuer(dataDir, cleanup)
  const hasKafka = withKafka && (await whyNoBroker()) === undefined
  const kafka = hasKafka ? await startBroker({ dataDir: join(dataDir, 'kafka') }) : undefined
  if (kafka) cleanup.defer(() => kafka.stop())
  return {
    issuer,
    hasKafka,
    settings: {
      NODE_ENV: 'test',
      EVENTSTORE_URL: String(stores.eventStoreUrl),
      DATABASE_URL: String(stores.databaseUrl),
      OIDC_ISSUER: issuer,
      OIDC_AUDIENCE: AUDIENCE,
      ...(kafka && { KAFKA_BROKERS: kafka.brokers.join(',') }),
    },
  }
}
