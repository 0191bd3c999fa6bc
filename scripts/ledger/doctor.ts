import { Command } from 'commander'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { openDatabase } from '../../src/adapters/postgres/database.ts'
import type { Database, EventStore } from '../../src/ports.ts'
import { checkClock } from './doctor/clock.ts'
import {
  checkApproval,
  checkConfiguration,
  checkExceptions,
  type Configuration,
  readConfiguration,
} from './doctor/configuration.ts'
import { checkErrors } from './doctor/errors.ts'
import { examineFeeds, type FeedExamination, type FeedReport } from './doctor/feeds.ts'
import { type Check, finding, notChecked, orNotChecked, reasonOf } from './doctor/finding.ts'
import { awaitLeases, checkLocks, type LeaseReport, neededLeases } from './doctor/locks.ts'
import { compareLogs } from './doctor/log.ts'
import { examineMachine, type Machine } from './doctor/machine.ts'
import { checkDeadLetters } from './doctor/deadLetters.ts'
import { checkRights } from './doctor/rights.ts'
import { checkTenants } from './doctor/tenants.ts'
import { checkTenantBytes } from './doctor/tenantBytes.ts'
import { checkVersions, readVersions, type Versions } from './doctor/versions.ts'
import { hasSigningKey } from '../../src/compose/signingKey.ts'
import { checkApi, checkIssuer, checkKafka, checkMetrics, checkPostgres, checkStore } from './doctor/dependencies.ts'
import { exitWhenPrinted, print, printJson } from './print.ts'
import { aligned } from './table.ts'
import { findConnections, howToStart, type ServiceAddresses, type Connections, withoutPassword } from './connections.ts'

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
    orNotChecked('clock', () => checkClock(database)),
    orNotChecked('locks', locks),
    orNotChecked('dead letters', () => checkDeadLetters(database)),
    orNotChecked('tenant storage', () => checkTenantBytes(database, config.tenantBytesPerDay)),
    orNotChecked('failed feeds', () => checkErrors(database)),
  ])
  return { checks, leases }
}

const examineBoth = async (examination: FeedExamination, head: bigint): Promise<Pick<Examined, 'checks' | 'feeds'>> => {
  const failed = (error: unknown) => ({ checks: [notChecked('feeds', reasonOf(error))], feeds: [] })
  const [log, examined] = await Promise.all([
    orNotChecked('log', () => compareLogs(examination)),
    examineFeeds(examination, head).catch(failed),
  ])
  return { checks: [log, ...examined.checks], feeds: examined.feeds }
}

const withoutAnswer = (names: readonly string[], who: string): readonly Check[] =>
  names.map(name => notChecked(name, `${who} does not answer`))

const NO_STORE = withoutAnswer(['event store rights', 'tenants'], 'the event store')
const DATABASE_CHECKS = ['clock', 'locks', 'dead letters', 'tenant storage', 'failed feeds']
const NO_DATABASE: OfDatabase = { checks: withoutAnswer(DATABASE_CHECKS, 'Postgres'), leases: [] }
const noFeeds = (who: string): Pick<Examined, 'checks' | 'feeds'> => ({
  checks: withoutAnswer(['log', 'feeds'], who),
  feeds: [],
})

type Stores = { readonly store: EventStore | undefined; readonly database: Database | undefined }

const examineStore = (store: EventStore): Promise<readonly Check[]> =>
  Promise.all([
    orNotChecked('event store rights', () => checkRights(store)),
    orNotChecked('tenants', () => checkTenants(store)),
  ])

/** Examines the stores that respond, each for itself and both together. */
const examineOpened = async (
  { running, addresses, config }: Connections,
  { store, database }: Stores,
): Promise<Examined> => {
  const { event_store, postgres, kafka } = addresses
  const [stored, postgresCheck, versions] = await Promise.all([
    store ? checkStore(event_store ?? '', store) : { check: unknown('event store', 'EVENTSTORE_URL') },
    database
      ? checkPostgres(postgres ?? '', database, running?.pids['postgres'] !== undefined)
      : unknown('Postgres', 'DATABASE_URL'),
    readVersions(database, event_store ?? undefined),
  ])
  const hasKafka = kafka !== null
  const [ofStore, ofDatabase, both] = await Promise.all([
    store && 'head' in stored ? examineStore(store) : NO_STORE,
    database && postgresCheck.status === 'ok' ? examineDatabase(database, { config, addresses }) : NO_DATABASE,
    store && database && 'head' in stored && postgresCheck.status === 'ok'
      ? examineBoth({ store, database, hasKafka, isEmbedded: running?.pids['eventstore'] !== undefined }, stored.head)
      : noFeeds('head' in stored ? 'Postgres' : 'the event store'),
  ])
  const checks = [
    stored.check,
    postgresCheck,
    checkVersions(versions),
    ...ofStore,
    ...both.checks,
    ...ofDatabase.checks,
  ]
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

const masked = (addresses: ServiceAddresses): ServiceAddresses => ({
  ...addresses,
  event_store: addresses.event_store && withoutPassword(addresses.event_store),
  postgres: addresses.postgres && withoutPassword(addresses.postgres),
})

const examine = async ({ withPasswords }: Options): Promise<Diagnosis> => {
  const connections = await findConnections()
  const { config, addresses } = connections
  const { machine, checks } = await examineMachine(config)
  const nothingThere = Object.values(addresses).every(address => address === null)
  const dependencies = nothingThere
    ? { ...NOTHING_RUNS, checks: [finding('service', 'It is not running.', howToStart(config.dataDir))] }
    : await examineDependencies(connections)
  const settings = [checkConfiguration(process.env), ...checkExceptions(config.insecure), checkApproval(process.env)]
  const all = [...settings, ...checks, ...dependencies.checks]
  const isOk = all.every(({ status }) => status === 'ok' || status === 'not_used')
  const at = new Date().toISOString()
  const configuration = readConfiguration(process.env)
  const { feeds, locks, versions } = dependencies
  return {
    ok: isOk,
    at,
    addresses: withPasswords ? addresses : masked(addresses),
    configuration,
    ...machine,
    ...(versions && { versions }),
    checks: all,
    feeds,
    locks,
  }
}

type Options = { readonly json: boolean; readonly withPasswords: boolean }

const WORDS: Readonly<Record<Check['status'], string>> = {
  ...{ ok: 'ok', not_used: '-', finding: 'FINDING' },
  not_checked: 'not checked:',
}

const printTable = ({ checks }: Diagnosis): void => {
  for (const line of aligned(checks.map(({ check, status, detail }) => [WORDS[status], check, detail]))) print(line)
  print()
  // Checks that could not be made share one remedy.
  const remedies = new Map<string, string[]>()
  for (const check of checks)
    if ('way_out' in check) remedies.set(check.way_out, [...(remedies.get(check.way_out) ?? []), check.check])
  for (const [remedy, names] of remedies) print(`${names.join(', ')}: ${remedy}`)
  if (remedies.size === 0) print('No problems were found.')
}

export const doctorCommand = new Command('doctor')
  .description('Checks every dependency and feed, and prints each problem with its remedy.')
  .option(
    '--json',
    'print JSON: {ok, addresses, configuration, node, data_directory, versions, checks, feeds, locks}',
    false,
  )
  .option(
    '--with-passwords',
    'with --json: print the addresses of Postgres and the event store with their passwords',
    false,
  )
  .addHelpText(
    'after',
    '\nChecks the configuration, Node, the data directory and its disk, the API, the event store and the rights on it, Postgres,\n' +
      'Kafka and its topics, the issuer, the metrics, versions, the clock, the locks, suspended tenants and those near their quota of bytes, whether\n' +
      'tables and log belong together, and how far the projections, the processes and the publisher are behind the log. Exit code 1 if anything is down or behind.\n' +
      'addresses: {api, event_store, postgres, kafka, issuer, metrics}. A check that could not be made is printed as `not checked:`, which is no verdict; exit code 1.',
  )
  .action(async (options: Options) => {
    const diagnosis = await examine(options)
    if (options.json) printJson(diagnosis)
    else printTable(diagnosis)
    process.exitCode = diagnosis.ok ? 0 : 1
    // A dependency that never answers keeps its connection open, and with it this process.
    exitWhenPrinted()
  })
