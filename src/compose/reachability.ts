import { once } from 'node:events'
import { connect } from 'node:net'
import { connectionParts } from '../adapters/eventstoredb/connectionString.ts'
import type { Config } from '../settings/config.ts'
import { systemCode } from '../lib/startupError.ts'
import { dependencyNames, type Notify } from './dependencyNotices.ts'

/** Names a wrong address of a dependency at once, although the start, or a request, needs it only later. */

type Place = { readonly host: string; readonly port: number }
type Dependency = { readonly name: string; readonly places: readonly Place[] }

const CONNECT_MAX_MS = 1_000

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the connection was refused',
  ENOTFOUND: 'there is no such host',
  EAI_AGAIN: 'the name of the host cannot be resolved',
  EHOSTUNREACH: 'the host is unreachable',
  ENETUNREACH: 'the network is unreachable',
}

/** Resolves to the reason why no connection was made. */
const failureAt = async ({ host, port }: Place): Promise<string | undefined> => {
  const socket = connect({ host, port })
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(CONNECT_MAX_MS) })
    return undefined
  } catch (error) {
    const code = systemCode(error)
    return REASONS[code ?? ''] ?? (code?.startsWith('E') ? code : `no answer within ${CONNECT_MAX_MS / 1_000} s`)
  } finally {
    socket.destroy()
  }
}

const placeIn = (address: string, defaultPort: number): readonly Place[] => {
  const { hostname, port } = new URL(`tcp://${address}`)
  return hostname === '' ? [] : [{ host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port) || defaultPort }]
}

const POSTGRES_PORT = 5432
const EVENT_STORE_PORT = 2113
const HTTPS_PORT = 443
const HTTP_PORT = 80

const placesOfDatabase = (address: string): readonly Place[] => {
  const url = URL.parse(address)
  // Without a host, or with one in the query, Postgres may be at a Unix socket.
  if (url === null || url.host === '' || url.searchParams.has('host')) return []
  return placeIn(url.host, POSTGRES_PORT)
}

/** With `esdb+discover` the host may be a name with several addresses, of which the client chooses one. */
const placesOfStore = (address: string): readonly Place[] =>
  connectionParts(address).hosts.flatMap(host => placeIn(host, EVENT_STORE_PORT))

const placesOfIssuer = (address: string): readonly Place[] => {
  const { host, protocol } = new URL(address)
  return placeIn(host, protocol === 'https:' ? HTTPS_PORT : HTTP_PORT)
}

const externalDependencies = (config: Config): readonly Dependency[] => {
  const names = dependencyNames(config)
  const { databaseUrl, eventStoreUrl, kafka, issuer } = config
  return [
    { name: names.database, places: databaseUrl === undefined ? [] : placesOfDatabase(databaseUrl) },
    { name: names['event store'], places: eventStoreUrl === undefined ? [] : placesOfStore(eventStoreUrl) },
    { name: names['fact bus'], places: kafka?.brokers.flatMap(broker => placeIn(broker, 0)) ?? [] },
    { name: `the issuer ${issuer} (OIDC_ISSUER)`, places: issuer === undefined ? [] : placesOfIssuer(issuer) },
  ]
}

/** Names each external dependency none of whose addresses accepts a connection. Does not reject. */
export const reportUnreachable = async (config: Config, notify: Notify): Promise<void> => {
  const report = async ({ name, places }: Dependency): Promise<void> => {
    const failures = await Promise.all(places.map(failureAt))
    const [failure] = failures
    if (failure !== undefined && !failures.includes(undefined))
      notify(`Cannot connect to ${name}: ${failure}. Trying again.`)
  }
  await Promise.all(externalDependencies(config).map(report))
}
