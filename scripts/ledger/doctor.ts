import { Command } from 'commander'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { openDatabase } from '../../src/adapters/postgres/database.ts'
import type { Database, EventStore } from '../../src/ports.ts'
import { checkClock } from './doctor/clock.ts'
import { checkConfiguration, checkExceptions, type Configuration, readConfiguration } from './doctor/configuration.ts'
import { checkErrors } from './doctor/errors.ts'
import { examineFeeds, type FeedExamination, type FeedReport } from './doctor/feeds.ts'
import { type Check, finding, orFinding, reasonOf } from './doctor/finding.ts'
import { awaitLeases, checkLocks, type LeaseReport, neededLeases } from './doctor/locks.ts'
import { compareLogs } from './doctor/log.ts'
import { examineMachine, type Machine } from './doctor/machine.ts'
import { checkDeadLetters } from './doctor/deadLetters.ts'
import { checkRights } from './doctor/rights.ts'
import { checkTenantBytes } from './doctor/tenantBytes.ts'
import { checkVersions, readVersions, type Versions } from './doctor/versions.ts'
import { hasSigningKey } from '../../src/compose/signingKey.ts'
import { checkApi, checkIssuer, checkKafka, checkMetrics, checkPostgres, checkStore } from './doctor/dependencies.ts'
import { exitWhenPrinted, print, printJson } from './print.ts'
import { aligned } from './table.ts'
import { findConnections, howToStart, type ServiceAddresses, type Connections } from './connections.ts'

/** `doctor`: checks every dependency and feed, and prints the findings with their remedies. */

/** The document of `--json`. */
type Diagnosis = Machine & {
  readonly ok: boolean
  readonly at: string
  readonly addresses: ServiceAddresses
  readonly configuration: Configuration
  readonly checks: readonly Check[]
  readonly feeds: readonly FeedReport[]
  readonly locks: readonly LeaseReport[]
  /** Of the build and of the servers that respond; absent where no service is known. */
  readonly versions?: Versions
}

type Examined = {
  readonly checks: readonly Check[]
  readonly feeds: readonly FeedReport[]
  readonly locks: readonly LeaseReport[]
  readonly versions: Versions | undefined
}

const unknown = (check: string, setting: string): Check =>
  finding(check, 'Its address is not known.', `Set ${setting}, or start the service, which brings its own.`)

type OfDatabase = { readonly checks: readonly Check[]; readonly leases: readonly LeaseReport[] }

const examineDatabase = async (
  database: Database,
  { config, addresses }: Pick<Connections, 'config' | 'addresses'>,
): Promise<OfDatabase> => {
  const needed = neededLeases({ hasKafka: addresses.kafka !== null, signs: hasSigningKey(config.evidence) })
  let leases: readonly LeaseReport[] = []
  const locks = async (): Promise<Check> => {
    leases = await awaitLeases(database, needed)
    return checkLocks(leases, needed)
  }
  const checks = await Promise.all([
    orFinding('clock', () => checkClock(database)),
    orFinding('locks', locks),
    orFinding('dead letters', () => checkDeadLetters(database)),
    orFinding('bytes of tenants', () => checkTenantBytes(database, config.tenantBytesPerDay)),
    orFinding('failed feeds', () => checkErrors(database)),
  ])
  return { checks, leases }
}

const examineBoth = async (examination: FeedExamination, head: bigint) => {
  const failed = (error: unknown) => ({
    checks: [
      finding('feeds', `They cannot be checked: ${reasonOf(error)}`, 'See the other findings, then run doctor again.'),
    ],
    feeds: [],
  })
  const [log, examined] = await Promise.all([
    orFinding('log', () => compareLogs(examination)),
    examineFeeds(examination, head).catch(failed),
  ])
  return { checks: [log, ...examined.checks], feeds: examined.feeds }
}

const NO_DATABASE: OfDatabase = { checks: [], leases: [] }
const NO_FEEDS: Awaited<ReturnType<typeof examineBoth>> = { checks: [], feeds: [] }

type Stores = { readonly store: EventStore | undefined; readonly database: Database | undefined }

const examineRights = async (store: EventStore): Promise<readonly Check[]> => [
  await orFinding('event store rights', () => checkRights(store)),
]

/** Examines the stores that respond, each for itself and both together. */
const examineOpened = async (
  { running, addresses, config }: Connections,
  { store, database }: Stores,
): Promise<Examined> => {
  const { event_store, postgres, kafka } = addresses
  const [stored, postgresCheck, versions] = await Promise.all([
    store ? checkStore(event_store ?? '', store) : { check: unknown('event store', 'EVENTSTORE_URL') },
    database ? checkPostgres(postgres ?? '', database) : unknown('Postgres', 'DATABASE_URL'),
    readVersions(database, event_store ?? undefined),
  ])
  const hasKafka = kafka !== null
  const [rights, ofDatabase, both] = await Promise.all([
    store && 'head' in stored ? examineRights(store) : Promise.resolve([]),
    database && postgresCheck.status === 'ok' ? examineDatabase(database, { config, addresses }) : NO_DATABASE,
    store && database && 'head' in stored && postgresCheck.status === 'ok'
      ? examineBoth({ store, database, hasKafka, isEmbedded: running?.pids['eventstore'] !== undefined }, stored.head)
      : NO_FEEDS,
  ])
  const checks = [stored.check, postgresCheck, checkVersions(versions), ...rights, ...both.checks, ...ofDatabase.checks]
  return { checks, feeds: both.feeds, locks: ofDatabase.leases, versions }
}

const examineStores = async (connections: Connections): Promise<Examined> => {
  const { event_store, postgres } = connections.addresses
  const store = event_store === null ? undefined : openEventStore({ connectionString: event_store })
  const database =
    postgres === null ? undefined : openDatabase({ connectionString: postgres, applicationName: 'ledger-doctor' })
  try {
    return await examineOpened(connections, { store, database })
  } finally {
    await Promise.all([store?.close(), database?.close()])
  }
}

const examineDependencies = async (connections: Connections): Promise<Examined> => {
  const { config, addresses } = connections
  const { api, kafka, issuer, metrics } = addresses
  const [reached, stores, brokers, keys, operator] = await Promise.all([
    api === null ? unknown('API', 'LEDGER_DATA_DIR') : checkApi(api),
    examineStores(connections),
    checkKafka(kafka, config),
    issuer === null ? unknown('issuer', 'OIDC_ISSUER') : checkIssuer(issuer),
    checkMetrics(metrics),
  ])
  return { ...stores, checks: [reached, ...stores.checks, ...brokers, keys, operator] }
}

const NOTHING_RUNS: Omit<Examined, 'checks'> = { feeds: [], locks: [], versions: undefined }

const examine = async (): Promise<Diagnosis> => {
  const connections = await findConnections()
  const { config, addresses } = connections
  const { machine, checks } = await examineMachine(config.dataDir)
  const nothingThere = Object.values(addresses).every(address => address === null)
  const dependencies = nothingThere
    ? { ...NOTHING_RUNS, checks: [finding('service', 'It is not running.', howToStart(config.dataDir))] }
    : await examineDependencies(connections)
  const all = [checkConfiguration(process.env), ...checkExceptions(config.insecure), ...checks, ...dependencies.checks]
  const isOk = all.every(({ status }) => status !== 'finding')
  const at = new Date().toISOString()
  const configuration = readConfiguration(process.env)
  const { feeds, locks, versions } = dependencies
  return {
    ok: isOk,
    at,
    addresses,
    configuration,
    ...machine,
    ...(versions && { versions }),
    checks: all,
    feeds,
    locks,
  }
}

const WORDS: Readonly<Record<Check['status'], string>> = { ok: 'ok', not_used: '-', finding: 'FINDING' }

const printTable = ({ checks }: Diagnosis): void => {
  for (const line of aligned(checks.map(({ check, status, detail }) => [WORDS[status], check, detail]))) print(line)
  print()
  const findings = checks.filter(check => check.status === 'finding')
  for (const { check, way_out } of findings) print(`${check}: ${way_out}`)
  if (findings.length === 0) print('No problems were found.')
}

export const doctorCommand = new Command('doctor')
  .description('Checks every dependency and feed, and prints each problem with its remedy.')
  .option(
    '--json',
    'print JSON: {ok, addresses, configuration, node, data_directory, versions, checks, feeds, locks}',
    false,
  )
  .addHelpText(
    'after',
    '\nChecks the configuration, Node, the data directory and its disk, the API, the event store and the rights on it, Postgres,\n' +
      'Kafka and its topics, the issuer, the metrics, versions, the clock, the locks, tenants near their quota of bytes, whether\n' +
      'tables and log belong together, and how far the projections, the processes and the publisher are behind the log. Exit code 1 if anything is down or behind.\n' +
      'addresses: {api, event_store, postgres, kafka, issuer, metrics}. With --json the address of Postgres contains its password.',
  )
  .action(async ({ json }: { readonly json: boolean }) => {
    const diagnosis = await examine()
    if (json) printJson(diagnosis)
    else printTable(diagnosis)
    process.exitCode = diagnosis.ok ? 0 : 1
    // A dependency that never answers keeps its connection open, and with it this process.
    exitWhenPrinted()
  })
