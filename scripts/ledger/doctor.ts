import { Command } from 'commander'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { openDatabase } from '../../src/adapters/postgres/database.ts'
import type { Database, EventStore } from '../../src/ports.ts'
import {
  checkApproval,
  checkConfiguration,
  checkExceptions,
  type Configuration,
  readConfiguration,
} from './doctor/configuration.ts'
import { checkClock, checkDeadLetters, checkErrors, checkTenantBytes } from './doctor/databaseChecks.ts'
import { examineFeeds, type FeedExamination, type FeedReport } from './doctor/feeds.ts'
import { reasonOf } from '../../src/lib/connectionFailures.ts'
import { type Check, finding, notChecked, orNotChecked } from './doctor/finding.ts'
import { awaitLeases, checkLocks, type LeaseReport, neededLeases } from './doctor/locks.ts'
import { examineMachine, type Machine } from './doctor/machine.ts'
import { checkBuilds, checkRights, checkTenants, compareLogs } from './doctor/storeChecks.ts'
import { hasSigningKey } from '../../src/compose/signingKey.ts'
import {
  checkApi,
  checkCollectors,
  checkIssuer,
  checkKafka,
  checkMetrics,
  checkPostgres,
  checkStore,
  checkVersions,
  readVersions,
  type Versions,
} from './doctor/dependencies.ts'
import { exitWhenPrinted, jsonOption, print, printJson } from './print.ts'
import { printTable } from './table.ts'
import { findConnections, howToStart, type ServiceAddresses, type Connections, withoutPassword } from './connections.ts'

type Examined = {
  readonly checks: readonly Check[]
  readonly feeds: readonly FeedReport[]
  readonly locks: readonly LeaseReport[]
  /** Of the build and of the servers that respond; absent where no service is known. */
  readonly versions?: Versions
}

/** The document of `--json`. */
type Diagnosis = Machine &
  Examined & {
    readonly ok: boolean
    readonly at: string
    readonly addresses: ServiceAddresses
    readonly configuration: Configuration
  }

const unknown = (check: string, setting: string): Check =>
  finding(check, 'Its address is not known.', `Set ${setting}, or start the service, which brings its own.`)

/** Makes each check by its name; where the dependency does not answer, each says so. */
const checksOf = <D>(
  who: string,
  dependency: D | undefined,
  checks: Readonly<Record<string, (dependency: D) => Promise<Check>>>,
): Promise<readonly Check[]> =>
  Promise.all(
    Object.entries(checks).map(async ([name, check]) =>
      dependency === undefined
        ? notChecked(name, `${who} does not answer`)
        : orNotChecked(name, () => check(dependency)),
    ),
  )

const examineAllFeeds = async (examination: FeedExamination | undefined, silent: string) => {
  const failed = (reason: string) => ({ checks: [notChecked('feeds', reason)], feeds: [] })
  if (examination === undefined) return failed(`${silent} does not answer`)
  return examineFeeds(examination).catch((error: unknown) => failed(reasonOf(error)))
}

type Stores = { readonly store: EventStore | undefined; readonly database: Database | undefined }

const examineDatabase = async (database: Database | undefined, { config, addresses }: Connections) => {
  const needed = neededLeases({ hasKafka: addresses.kafka !== null, signs: hasSigningKey(config.evidence) })
  let locks: readonly LeaseReport[] = []
  const checks = await checksOf('Postgres', database, {
    clock: checkClock,
    locks: async opened => {
      locks = await awaitLeases(opened, needed)
      return checkLocks(locks, needed)
    },
    'dead letters': checkDeadLetters,
    'tenant storage': opened => checkTenantBytes(opened, config.tenantBytesPerDay),
    'failed feeds': checkErrors,
  })
  return { checks, locks }
}

/** Examines the stores that respond, each for itself and both together. */
const examineOpened = async (connections: Connections, { store, database }: Stores): Promise<Examined> => {
  const { event_store, postgres, kafka } = connections.addresses
  const [stored, postgresCheck, versions] = await Promise.all([
    store ? checkStore(event_store ?? '', store) : { check: unknown('event store', 'EVENTSTORE_URL') },
    database
      ? checkPostgres(postgres ?? '', database, connections.running?.pids['postgres'] !== undefined)
      : unknown('Postgres', 'DATABASE_URL'),
    readVersions(database, event_store ?? undefined),
  ])
  const ofStore = store && 'head' in stored ? { store, head: stored.head } : undefined
  const answering = postgresCheck.status === 'ok' ? database : undefined
  const silent = ofStore === undefined ? 'the event store' : 'Postgres'
  const isEmbedded = connections.running?.pids['eventstore'] !== undefined
  const both = ofStore && answering && { ...ofStore, database: answering, hasKafka: kafka !== null, isEmbedded }
  const [storeChecks, logChecks, examinedFeeds, examinedDatabase] = await Promise.all([
    checksOf('the event store', ofStore?.store, { 'event store rights': checkRights, tenants: checkTenants }),
    checksOf(silent, both, { log: compareLogs, builds: checkBuilds }),
    examineAllFeeds(both, silent),
    examineDatabase(answering, connections),
  ])
  const first = [stored.check, postgresCheck, checkVersions(versions)]
  const checks = [...first, ...storeChecks, ...logChecks, ...examinedFeeds.checks, ...examinedDatabase.checks]
  return { checks, feeds: examinedFeeds.feeds, locks: examinedDatabase.locks, versions }
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
  const { api, issuer, metrics } = addresses
  const [reached, stores, brokers, keys, operator, collectors] = await Promise.all([
    api === null ? unknown('API', 'LEDGER_DATA_DIR') : checkApi(api),
    examineStores(connections),
    checkKafka(addresses, config),
    issuer === null ? unknown('issuer', 'OIDC_ISSUER') : checkIssuer(issuer),
    checkMetrics(metrics),
    checkCollectors(config),
  ])
  return { ...stores, checks: [reached, ...stores.checks, ...brokers, keys, operator, ...collectors] }
}

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
    ? { feeds: [], locks: [], checks: [finding('service', 'It is not running.', howToStart(config.dataDir))] }
    : await examineDependencies(connections)
  const settings = [checkConfiguration(process.env), ...checkExceptions(config.insecure), checkApproval(process.env)]
  const all = [...settings, ...checks, ...dependencies.checks]
  return {
    ok: all.every(({ status }) => status === 'ok' || status === 'not_used'),
    at: new Date().toISOString(),
    addresses: withPasswords ? addresses : masked(addresses),
    configuration: readConfiguration(process.env),
    ...machine,
    ...dependencies,
    checks: all,
  }
}

type Options = { readonly json: boolean; readonly withPasswords: boolean }

const WORDS: Readonly<Record<Check['status'], string>> = {
  ...{ ok: 'ok', not_used: '-', finding: 'FINDING' },
  not_checked: 'not checked:',
}

const printDiagnosis = ({ checks }: Diagnosis): void => {
  printTable(checks.map(({ check, status, detail }) => [WORDS[status], check, detail]))
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
  .addOption(
    jsonOption('print JSON: {ok, addresses, configuration, node, data_directory, versions, checks, feeds, locks}'),
  )
  .option(
    '--with-passwords',
    'with --json: print the addresses of Postgres and the event store with their passwords',
    false,
  )
  .addHelpText(
    'after',
    '\nChecks the configuration, Node, the data directory and its disk, the API, the event store and the rights on it, Postgres,\n' +
      'Kafka, its topics and whether their newest facts are in the log, the issuer, the metrics, versions, the builds that run, the\n' +
      'clock, the locks, suspended tenants and those near their quota of bytes, whether tables and log belong together, and how far the projections, the processes and the publisher are behind the log. Exit code 1 if anything is down or behind.\n' +
      'addresses: {api, event_store, postgres, kafka, issuer, metrics}. A check that could not be made is printed as `not checked:`, which is no verdict; exit code 1.',
  )
  .action(async (options: Options) => {
    const diagnosis = await examine(options)
    if (options.json) printJson(diagnosis)
    else printDiagnosis(diagnosis)
    process.exitCode = diagnosis.ok ? 0 : 1
    // A dependency that never answers keeps its connection open, and with it this process.
    exitWhenPrinted()
  })
