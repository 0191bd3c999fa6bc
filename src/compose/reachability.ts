import { readFileSync } from 'node:fs'
import { encryptionOf } from '../adapters/eventstoredb/session.ts'
import { connectionFailureOf, PART_SETTINGS } from '../lib/connectionFailures.ts'
import { type Encryption, type Place, placeIn, placeOfUrl, probe, urlEncryption } from '../lib/probe.ts'
import { storeAddressOf } from '../lib/storeAddress.ts'
import type { Config } from '../settings/config.ts'
import { dependencyNames, type Notify } from './dependencyNotices.ts'

/** Names a wrong address or certificate of a dependency at once, although the start, or a request, needs it only later. */

type Dependency = {
  readonly name: string
  readonly part: keyof typeof PART_SETTINGS
  readonly places: readonly Place[]
  readonly encryption: Encryption | undefined
}

const CONNECT_MAX_MS = 3_000
const POSTGRES_PORT = 5432
const EVENT_STORE_PORT = 2113

const placesOfDatabase = (address: string): readonly Place[] => {
  const url = URL.parse(address)
  // Without a host, or with one in the query, Postgres may be at a Unix socket.
  if (url === null || url.host === '' || url.searchParams.has('host')) return []
  return placeIn(url.host, POSTGRES_PORT)
}

/** In node-postgres these three verify the certificate and the host name. */
const VERIFYING = ['verify-full', 'verify-ca', 'require']

const databaseEncryption = (address: string): Encryption | undefined => {
  const { sslmode = '', sslrootcert, uselibpqcompat } = Object.fromEntries(URL.parse(address)?.searchParams ?? [])
  if (!VERIFYING.includes(sslmode) || uselibpqcompat === 'true') return undefined
  return { begins: 'by asking Postgres', ...(sslrootcert && { ca: readFileSync(sslrootcert) }) }
}

const databaseOf = ({ databaseUrl }: Config, name: string): readonly Dependency[] => {
  if (databaseUrl === undefined) return []
  return [
    { name, part: 'database', places: placesOfDatabase(databaseUrl), encryption: databaseEncryption(databaseUrl) },
  ]
}

/** With `+discover` the host may be a name with several addresses, of which the client chooses one. */
const storeOf = ({ eventStoreUrl }: Config, name: string): readonly Dependency[] => {
  if (eventStoreUrl === undefined) return []
  const address = storeAddressOf(eventStoreUrl)
  const places = address.hosts.flatMap(host => placeIn(host, EVENT_STORE_PORT))
  return [{ name, part: 'event store', places, encryption: encryptionOf(address) }]
}

/** ApiVersions in version 0, which brokers answer before a login: the length, 18, 0, a number, no name. */
const API_VERSIONS = Buffer.from([0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 0, 255, 255])

const brokersOf = ({ kafka }: Config, name: string): readonly Dependency[] => {
  if (kafka === undefined) return []
  const places = kafka.brokers.flatMap(broker => placeIn(broker, 0))
  const encryption = kafka.ssl === false ? undefined : { ...(kafka.ssl !== true && kafka.ssl), request: API_VERSIONS }
  return [{ name, part: 'fact bus', places, encryption }]
}

const issuerOf = ({ issuer }: Config): readonly Dependency[] => {
  if (issuer === undefined) return []
  const name = `the issuer ${issuer} (OIDC_ISSUER)`
  return [{ name, part: 'issuer', places: placeOfUrl(issuer), encryption: urlEncryption(issuer) }]
}

const collectorsOf = ({ telemetry }: Config): readonly Dependency[] =>
  telemetry.map(({ setting, url, ca }) => ({
    name: `the collector ${url} (${setting})`,
    part: 'telemetry',
    places: placeOfUrl(url),
    encryption: urlEncryption(url, ca),
  }))

const externalDependencies = (config: Config): readonly Dependency[] => {
  const names = dependencyNames(config)
  return [
    ...databaseOf(config, names.database),
    ...storeOf(config, names['event store']),
    ...brokersOf(config, names['fact bus']),
    ...issuerOf(config),
    ...collectorsOf(config),
  ]
}

/** Names each external dependency none of whose addresses can be used. */
export const reportUnreachable = async (config: Config, notify: Notify): Promise<void> => {
  const report = async ({ name, part, places, encryption }: Dependency): Promise<void> => {
    const failures = await Promise.all(places.map(place => probe(place, { encryption, timeoutMs: CONNECT_MAX_MS })))
    if (failures.length === 0 || failures.includes(undefined)) return
    const { cause, remedy } = connectionFailureOf(failures[0], PART_SETTINGS[part])
    notify(`Cannot connect to ${name}: ${cause}. ${remedy} Trying again.`)
  }
  await Promise.all(externalDependencies(config).map(report))
}
