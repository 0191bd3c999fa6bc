import { resolve } from 'node:path'
import { type Addresses, readAddresses } from '../../src/compose/addressesFile.ts'
import { type Config, readConfig } from '../../src/settings/config.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { printNotice } from './print.ts'

/** The addresses of the service that runs in the data directory, else the configured ones. */
export type Connections = {
  readonly config: Config
  /** The service that runs in the data directory; undefined if none does. */
  readonly running: Addresses | undefined
  readonly addresses: ServiceAddresses
}

export type ServiceAddresses = { readonly [Name in Exclude<keyof Addresses, 'pids'>]: string | null }

const configuredAddresses = (config: Config): ServiceAddresses => ({
  // A service with external dependencies only writes no address file; then it is at PORT.
  api: isConfigured(config) ? `http://localhost:${config.port}` : null,
  event_store: config.eventStoreUrl ?? null,
  postgres: config.databaseUrl ?? null,
  kafka: config.kafka?.brokers.join(',') ?? null,
  issuer: config.issuer ?? null,
  metrics: metricsAddress(config),
})

/** Known where the port is set; a service that had to take another one has it in its address file. */
const metricsAddress = (config: Config): string | null => {
  const { metrics } = config
  if (!isConfigured(config) || metrics === undefined || metrics.isDefault || metrics.port === 0) return null
  return `http://${metrics.host}:${metrics.port}/metrics`
}

/** Whether the environment names any external dependency. */
const isConfigured = ({ eventStoreUrl, databaseUrl, kafka, issuer }: Config): boolean =>
  [eventStoreUrl, databaseUrl, kafka, issuer].some(setting => setting !== undefined)

const runningOn = (dataDir: string): Promise<Addresses | undefined> =>
  readAddresses(dataDir).catch((error: unknown) => {
    throw new StartupError(`The addresses in ${dataDir} cannot be read: restart the service.`, error)
  })

const SETTINGS = [
  ['event_store', 'EVENTSTORE_URL'],
  ['postgres', 'DATABASE_URL'],
  ['kafka', 'KAFKA_BROKERS'],
  ['issuer', 'OIDC_ISSUER'],
] as const

/** A setting that names another dependency than the service uses would otherwise be ignored. */
const refuseOtherSettings = (config: Config, running: ServiceAddresses): void => {
  const configured = configuredAddresses(config)
  for (const [name, setting] of SETTINGS) {
    const own = withoutPassword(configured[name] ?? '')
    const used = withoutPassword(running[name] ?? '')
    if (own !== '' && own !== used)
      throw new StartupError(
        `${setting} is ${own}, and the service that runs on ${config.dataDir} ${used === '' ? 'has none' : `uses ${used}`}: ` +
          'unset it to mean this service, or name another data directory by LEDGER_DATA_DIR.',
      )
  }
}

const placeOf = ({ config, running }: Connections): string => {
  if (running !== undefined) return `the service on ${resolve(config.dataDir)}`
  return isConfigured(config)
    ? 'the configured services'
    : `the data directory ${resolve(config.dataDir)}, without a service`
}

const targetOf = (connections: Connections): string => {
  const { api, event_store, postgres, kafka } = connections.addresses
  const named = Object.entries({ API: api, 'event store': event_store, Postgres: postgres, Kafka: kafka })
  const places = named.flatMap(([name, address]) => (address === null ? [] : [`${name} ${withoutPassword(address)}`]))
  return places.length === 0 ? placeOf(connections) : `${placeOf(connections)}: ${places.join(', ')}`
}

let isTargetPrinted = false

/** Prints the target on stderr. `api` replaces the address that is found. Throws a StartupError. */
export const findConnections = async (api?: string): Promise<Connections> => {
  const config = readConfig()
  const running = await runningOn(config.dataDir)
  if (running !== undefined) refuseOtherSettings(config, running)
  const { pids: _, ...addresses } = running ?? { pids: {}, ...configuredAddresses(config) }
  const connections = { config, running, addresses: { ...addresses, api: api ?? addresses.api } }
  // Once in each command.
  if (!isTargetPrinted) printNotice(`Target: ${api === undefined ? targetOf(connections) : `API ${api}`}`)
  isTargetPrinted = true
  return connections
}

/** Instructions for the case that no service is known. */
export const howToStart = (dataDir: string): string =>
  `No service is running on ${dataDir}. Run npm start, or set LEDGER_DATA_DIR to the data directory of the running service.`

/** The connection string without its password, for display. That of the event store may contain `/`. */
export const withoutPassword = (address: string): string =>
  address.replace(/(:\/\/[^:/@]*):(?:[^/]*|[^@]*)@/, '$1:…@').replace(/([?&]password=)[^&]*/gi, '$1…')
