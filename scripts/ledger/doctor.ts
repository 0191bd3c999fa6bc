import { Command } from 'commander'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { openDatabase } from '../../src/adapters/postgres/database.ts'
import { checkErrors } from './doctor/errors.ts'
import { examineFeeds, type FeedReport } from './doctor/feeds.ts'
import { type Check, finding } from './doctor/finding.ts'
import { compareLogs } from './doctor/log.ts'
import { examineMachine, type Machine } from './doctor/machine.ts'
import { checkParked } from './doctor/parked.ts'
import { checkApi, checkIssuer, checkKafka, checkPostgres, checkStore } from './doctor/dependencies.ts'
import { print, printJson } from './print.ts'
import { aligned } from './table.ts'
import { findConnections, howToStart, type KnownAddresses, type Connections } from './connections.ts'

/** `doctor`: checks every dependency and feed, and prints the findings with their remedies. */

/** The document of `--json`. */
type Diagnosis = Machine & {
  readonly ok: boolean
  readonly at: string
  readonly addresses: KnownAddresses
  readonly checks: readonly Check[]
  readonly feeds: readonly FeedReport[]
}

type Examined = { readonly checks: readonly Check[]; readonly feeds: readonly FeedReport[] }

const unknown = (check: string, setting: string): Check =>
  finding(check, 'It is not known where it is.', `Set ${setting}, or start the service, which brings its own.`)

/** Checks of the event store and of the database and, if both respond, of the feeds between them. */
const examineStores = async ({ running, addresses }: Connections): Promise<Examined> => {
  const { event_store, postgres, kafka } = addresses
  const store = event_store === null ? undefined : openEventStore({ connectionString: event_store })
  const database =
    postgres === null ? undefined : openDatabase({ connectionString: postgres, applicationName: 'ledger-doctor' })
  try {
    const [stored, postgresCheck] = await Promise.all([
      store ? checkStore(event_store ?? '', store) : { check: unknown('event store', 'EVENTSTORE_URL') },
      database ? checkPostgres(postgres ?? '', database) : unknown('Postgres', 'DATABASE_URL'),
    ])
    const checks = [stored.check, postgresCheck]
    if (!store || !database || !('head' in stored) || postgresCheck.status !== 'ok') return { checks, feeds: [] }
    const isEmbedded = running?.pids['eventstore'] !== undefined
    const examination = { store, database, hasKafka: kafka !== null, isEmbedded }
    const [examined, log, parked, errors] = await Promise.all([
      examineFeeds(examination, stored.head),
      compareLogs(examination),
      checkParked(database),
      checkErrors(database),
    ])
    return { checks: [...checks, log, ...examined.checks, parked, errors], feeds: examined.feeds }
  } finally {
    await Promise.all([store?.close(), database?.close()])
  }
}

const examineDependencies = async (connections: Connections): Promise<Examined> => {
  const { config, addresses } = connections
  const { api, kafka, issuer } = addresses
  const [reached, stores, brokers, keys] = await Promise.all([
    api === null ? unknown('API', 'LEDGER_DATA_DIR') : checkApi(api),
    examineStores(connections),
    checkKafka(kafka, config),
    issuer === null ? unknown('issuer', 'OIDC_ISSUER') : checkIssuer(issuer),
  ])
  return { checks: [reached, ...stores.checks, brokers, keys], feeds: stores.feeds }
}

const examine = async (): Promise<Diagnosis> => {
  const connections = await findConnections()
  const { config, addresses } = connections
  const { machine, checks } = await examineMachine(config.dataDir)
  const nothingThere = Object.values(addresses).every(address => address === null)
  const dependencies = nothingThere
    ? { checks: [finding('service', 'It does not run.', howToStart(config.dataDir))], feeds: [] }
    : await examineDependencies(connections)
  const all = [...checks, ...dependencies.checks]
  const isOk = all.every(({ status }) => status !== 'finding')
  return { ok: isOk, at: new Date().toISOString(), addresses, ...machine, checks: all, feeds: dependencies.feeds }
}

const WORDS: Readonly<Record<Check['status'], string>> = { ok: 'ok', not_used: '-', finding: 'FINDING' }

const printTable = ({ checks }: Diagnosis): void => {
  for (const line of aligned(checks.map(({ check, status, detail }) => [WORDS[status], check, detail]))) print(line)
  print()
  const findings = checks.filter(check => check.status === 'finding')
  for (const { check, way_out } of findings) print(`${check}: ${way_out}`)
  if (findings.length === 0) print('Nothing was found wrong.')
}

export const doctorCommand = new Command('doctor')
  .description('Checks every dependency and feed, and prints each problem with its remedy.')
  .option('--json', 'print JSON: {ok, addresses, node, data_directory, checks, feeds}', false)
  .addHelpText(
    'after',
    '\nChecks Node, the data directory and its disk, the API, the event store, Postgres, Kafka and the issuer, and how far\n' +
      'the projections, the processes and the publisher are behind the log. Exit code 1 if anything is down or behind.\n' +
      'addresses: {api, event_store, postgres, kafka, issuer, metrics}. With --json the address of Postgres contains its password.',
  )
  .action(async ({ json }: { readonly json: boolean }) => {
    const diagnosis = await examine()
    if (json) printJson(diagnosis)
    else printTable(diagnosis)
    process.exitCode = diagnosis.ok ? 0 : 1
  })
