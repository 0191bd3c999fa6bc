import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { Client } from 'pg'
import { endProcess } from '../../src/childProcesses/endProcess.ts'
import { type Addresses, readAddresses } from '../../src/compose/addressesFile.ts'
import { startEmbeddedServices } from '../../src/embedded/startEmbedded.ts'
import { startKafka } from '../kafka/broker.ts'
import { StartupError } from '../../src/lib/startupError.ts'

export type StoreAddresses = { readonly databaseUrl: string; readonly eventStoreUrl: string }

export type Emmett = { readonly address: string; readonly databaseUrl: string }

export type RunningService = {
  readonly addresses: Addresses
  readonly dataDir: string
  readonly publishes: boolean
  readonly kafkaPid?: number
}

export type StoppableService = RunningService & {
  /** From the start of the process to its line `ready`. */
  readonly readyMs: number
  /** Idempotent. */
  readonly stop: () => Promise<void>
}

const STOP_MAX_MS = 20_000
const SERVICE = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const TELEMETRY = new URL('../../src/telemetry.ts', import.meta.url).href
const EMMETT_EXPRESS = fileURLToPath(new URL('./emmettExpress.ts', import.meta.url))
const EMMETT_DATABASE = 'emmett'
const BARE_EXPRESS = fileURLToPath(new URL('./bareExpress.ts', import.meta.url))
const OUTPUT_LINES_MAX = 20
/** Limits that no benchmark reaches. */
const NO_LIMITS = 'default=100000000/60,payments=100000000/60,exports=100000000/60,auth_failures=100000000/60'

/** A function that runs once; later calls get the result of the first. */
const memo = <T>(start: () => Promise<T>): (() => Promise<T>) => {
  let started: Promise<T> | undefined
  return () => (started ??= start())
}

/** The context of every start. `releases` are executed newest first. */
type Start = {
  readonly directory: string
  readonly log: (line: string) => void
  readonly releases: (() => Promise<unknown>)[]
  readonly withKafka: boolean
}

type Broker = { readonly brokers: readonly string[]; readonly pid: number }

const startBroker = async ({ directory, log, releases, withKafka }: Start): Promise<Broker | undefined> => {
  if (!withKafka) return undefined
  log('starting Kafka')
  try {
    const broker = await startKafka({ dataDir: join(directory, 'kafka'), log })
    releases.push(() => broker.stop())
    return broker
  } catch (error) {
    if (!(error instanceof StartupError)) throw error
    log(`no Kafka: ${error.message}`)
    return undefined
  }
}

const startServiceOn = async (start: Start, dataDir: string, broker?: Broker): Promise<StoppableService> => {
  const kafkaSettings = broker && { KAFKA_BROKERS: broker.brokers.join(',') }
  const limits = { RATE_LIMITS: NO_LIMITS, TENANT_BYTES_PER_DAY: '1000TiB' }
  const env = { PORT: '0', LEDGER_DATA_DIR: dataDir, ...limits, ...kafkaSettings }
  const begunMs = performance.now()
  const { ready, stop } = startNode(start, ['--import', TELEMETRY, SERVICE], env)
  await ready
  const readyMs = performance.now() - begunMs
  const addresses = await readAddresses(dataDir)
  if (addresses === undefined) throw new Error('The service is ready and has no addresses.')
  const publishes = broker !== undefined
  return { addresses, dataDir, publishes, readyMs, stop, ...(broker && { kafkaPid: broker.pid }) }
}

const startBareExpress = async (start: Start, { addresses: { issuer, postgres } }: RunningService): Promise<string> => {
  const { ready } = startNode(start, [BARE_EXPRESS, '--issuer', issuer], { DATABASE_URL: postgres })
  return (await ready) ?? ''
}

const startEmmett = async (start: Start, { addresses }: RunningService): Promise<Emmett> => {
  const client = new Client({ connectionString: addresses.postgres })
  await client.connect()
  await client.query(`create database ${EMMETT_DATABASE}`).finally(() => client.end())
  const url = new URL(addresses.postgres)
  url.pathname = `/${EMMETT_DATABASE}`
  const { ready } = startNode(start, [EMMETT_EXPRESS], { DATABASE_URL: url.href })
  return { address: (await ready) ?? '', databaseUrl: url.href }
}

const startStores = async ({ directory, log, releases }: Start): Promise<StoreAddresses> => {
  log('starting a separate event store')
  const stores = await startStoresOn(join(directory, 'parts'), log)
  releases.push(stores.stop)
  return stores
}

/** The event store and Postgres of a data directory, without the service. */
export const startStoresOn = async (dataDir: string, log: (line: string) => void) => {
  const onExit = (reason: Error): void => log(reason.message)
  const services = { dataDir, database: true, eventStore: true, log: () => undefined, onExit }
  const { databaseUrl = '', eventStoreUrl = '', stop } = await startEmbeddedServices(services)
  return { databaseUrl, eventStoreUrl, stop }
}

/** The processes that the measurements need, in one temporary directory. Each starts when it is first asked for. */
export const createHarness = async (log: (line: string) => void, { withKafka = true } = {}) => {
  const directory = await mkdtemp(join(tmpdir(), 'ledger-bench-'))
  const releases: (() => Promise<unknown>)[] = [() => rm(directory, { recursive: true, force: true })]
  const starting = new Set<Promise<unknown>>()
  const once = <T>(start: () => Promise<T>): (() => Promise<T>) =>
    memo(() => {
      const started = start()
      starting.add(started)
      return started
    })
  const start: Start = { directory, log, releases, withKafka }
  const kafka = once(() => startBroker(start))
  const service = once(async (): Promise<RunningService> => {
    const broker = await kafka()
    log('starting the service')
    return startServiceOn(start, join(directory, 'service'), broker)
  })
  return {
    log,
    /** The path of a temporary file, which is removed with the directory. */
    file: (name: string): string => join(directory, name),
    /** The service as `npm start` runs it, publishing to Kafka if a broker can be started. */
    service,
    /** The service alone on a data directory of the caller's, which remains. */
    serviceOn: (dataDir: string): Promise<StoppableService> => startServiceOn(start, dataDir),
    /** Bare Express with the service's keys and database: the minimal cost of HTTP, a signature check and one query. */
    bareExpress: once(async () => startBareExpress(start, await service())),
    /** Emmett + Express on the Postgres server of the service, with a database of its own. */
    emmett: once(async () => startEmmett(start, await service())),
    /** A separate Postgres and event store without other load. */
    stores: once(() => startStores(start)),
    /** The addresses of a broker; undefined, after logging the reason, if none can be started. */
    kafka: async (): Promise<readonly string[] | undefined> => (await kafka())?.brokers,
    /** Stops everything, newest first, and removes the directory. Idempotent. */
    stop: memo(async () => {
      await Promise.allSettled(starting)
      for (const release of releases.toReversed()) await release().catch((error: unknown) => log(String(error)))
    }),
  }
}
export type Harness = Awaited<ReturnType<typeof createHarness>>

const QUIET = ['--disable-warning=ExperimentalWarning', '--disable-warning=TimeoutNegativeWarning']

/** `ready` resolves to the line before `ready`. The process is stopped with the harness. */
const startNode = ({ releases }: Start, args: readonly string[], env: Readonly<Record<string, string>>) => {
  const child = spawn(process.execPath, [...QUIET, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  // The child ends with this process, unless this process is killed.
  process.once('exit', () => child.kill('SIGTERM'))
  const output: string[] = []
  const ready = new Promise<string | undefined>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      createInterface({ input: stream }).on('line', line => {
        if (line === 'ready') resolve(output.at(-1))
        if (output.push(line) > OUTPUT_LINES_MAX) output.shift()
      })
    child.once('close', code => reject(new Error(`${args.at(-1)} ended with ${code}: ${output.join('\n')}`)))
  })
  const stop = (): Promise<void> => endProcess(child, 'SIGTERM', STOP_MAX_MS)
  releases.push(stop)
  return { ready, stop }
}
