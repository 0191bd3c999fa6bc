import { type Addresses, readAddresses } from '../../src/addressesFile.ts'
import { type Config, readConfig } from '../../src/config.ts'
import { StartupError } from '../../src/startupError.ts'

/**
 * The addresses of the ledger's services: those of the service that runs in the data directory, else the configured
 * ones.
 */
export type Connections = {
  readonly config: Config
  /** The service that runs in the data directory; undefined if none does. */
  readonly running: Addresses | undefined
  readonly addresses: KnownAddresses
}

export type KnownAddresses = { readonly [Name in Exclude<keyof Addresses, 'pids'>]: string | null }

const configuredAddresses = (config: Config): KnownAddresses => ({
  // A service with external dependencies only writes no address file; then it is at PORT.
  api: isConfigured(config) ? `http://localhost:${config.port}` : null,
  event_store: config.eventStoreUrl ?? null,
  postgres: config.databaseUrl ?? null,
  kafka: config.kafka?.brokers.join(',') ?? null,
  issuer: config.issuer ?? null,
  metrics: metricsAddress(config),
})

/** Known where the port is set; a service that chose a free one has it in its address file. */
const metricsAddress = (config: Config): string | null => {
  if (!isConfigured(config) || config.metrics === undefined || config.metrics.port === 0) return null
  return `http://${config.metrics.host}:${config.metrics.port}/metrics`
}

/** Whether the environment names any external dependency. */
const isConfigured = ({ eventStoreUrl, databaseUrl, kafka, issuer }: Config): boolean =>
  [eventStoreUrl, databaseUrl, kafka, issuer].some(setting => setting !== undefined)

const runningOn = (dataDir: string): Promise<Addresses | undefined> =>
  readAddresses(dataDir).catch((error: unknown) => {
    throw new StartupError(`The addresses in ${dataDir} cannot be read: restart the service.`, error)
  })

/** Reads the environment and the data directory. Throws a StartupError. */
export const findConnections = async (): Promise<Connections> => {
  const config = readConfig()
  const running = await runningOn(config.dataDir)
  if (running === undefined) return { config, running, addresses: configuredAddresses(config) }
  const { pids: _, ...addresses } = running
  return { config, running, addresses }
}

/** Instructions for the case that no service is known. */
export const howToStart = (dataDir: string): string =>
  `No service runs on ${dataDir}. Start it with npm start, or name the one that you mean by LEDGER_DATA_DIR.`

/** The connection string without its password, for display. */
export const withoutPassword = (address: string): string => address.replace(/(:\/\/[^:/@]*):[^@]*@/, '$1:…@')
