import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { type Addresses, readAddresses } from '../../src/addresses.ts'
import { type EmbeddedParts, startParts } from '../../src/embedded/parts.ts'
import { startKafka } from '../kafka/broker.ts'
import { CannotStart } from '../kafka/cannotStart.ts'

/** Everything that the measures run against, in one temporary directory, started when the first measure asks for it. */
export type Stage = {
  readonly say: (line: string) => void
  /** The path of a file that goes away with everything else. */
  readonly file: (name: string) => string
  /** The service as `npm start` runs it, publishing to Kafka when a broker can be had. */
  readonly service: () => Promise<ServiceOnStage>
  /** Bare Express on the service's keys and database: what HTTP, a signature check and one query cost anyway. */
  readonly bare: () => Promise<string>
  /** Postgres and an event store with nothing else on them. */
  readonly parts: () => Promise<{ readonly databaseUrl: string; readonly eventStoreUrl: string }>
  /** The addresses of a broker; undefined, after saying why, where none can be started. */
  readonly kafka: () => Promise<readonly string[] | undefined>
  /** Ends everything, newest first, and removes the directory. Twice is once. */
  readonly end: () => Promise<void>
}

export type ServiceOnStage = { readonly addresses: Addresses; readonly dataDir: string; readonly publishes: boolean }

const SERVICE = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const TELEMETRY = new URL('../../src/telemetry.ts', import.meta.url).href
const BARE = fileURLToPath(new URL('./bare.ts', import.meta.url))
const STOP_MAX_MS = 20_000
const SAID_LINES_MAX = 20
/** No caller of a benchmark may be told that it calls too often. */
const NO_LIMITS = 'default=100000000/60,payments=100000000/60,exports=100000000/60,auth_failures=100000000/60'

/** The second call gets what the first one started. */
const memo = <T>(start: () => Promise<T>): (() => Promise<T>) => {
  let started: Promise<T> | undefined
  return () => (started ??= start())
}

export const openStage = async (say: (line: string) => void): Promise<Stage> => {
  const directory = await mkdtemp(join(tmpdir(), 'ledger-bench-'))
  const releases: (() => Promise<unknown>)[] = [() => rm(directory, { recursive: true, force: true })]
  const starting = new Set<Promise<unknown>>()
  const part = <T>(start: () => Promise<T>): (() => Promise<T>) =>
    memo(() => {
      const started = start()
      starting.add(started)
      return started
    })

  const kafka = part(async () => {
    say('starting Kafka')
    try {
      const broker = await startKafka({ dataDir: join(directory, 'kafka'), say })
      releases.push(() => broker.stop())
      return broker.brokers
    } catch (error) {
      if (!(error instanceof CannotStart)) throw error
      say(`no Kafka: ${error.message}`)
      return undefined
    }
  })
  const service = part(async () => {
    const brokers = await kafka()
    say('starting the service')
    const dataDir = join(directory, 'service')
    const kafkaSettings = brokers === undefined ? {} : { KAFKA_BROKERS: brokers.join(',') }
    const env = { PORT: '0', LEDGER_DATA_DIR: dataDir, RATE_LIMITS: NO_LIMITS, ...kafkaSettings }
    const child = startNode(['--import', TELEMETRY, SERVICE], env)
    releases.push(() => stopped(child.process))
    await child.ready
    const addresses = await readAddresses(dataDir)
    if (addresses === undefined) throw new Error('The service is ready and has no addresses.')
    return { addresses, dataDir, publishes: brokers !== undefined }
  })
  const bare = part(async () => {
    const { addresses } = await service()
    const child = startNode([BARE, '--issuer', addresses.issuer], { DATABASE_URL: addresses.postgres })
    releases.push(() => stopped(child.process))
    return (await child.ready) ?? ''
  })
  const parts = part(async () => {
    say('starting an event store of its own')
    const onExit = (reason: Error): void => say(reason.message)
    const wanted = { dataDir: join(directory, 'parts'), database: true, eventStore: true, log: () => undefined, onExit }
    const started: EmbeddedParts = await startParts(wanted)
    releases.push(started.stop)
    return { databaseUrl: started.databaseUrl ?? '', eventStoreUrl: started.eventStoreUrl ?? '' }
  })
  const end = memo(async () => {
    await Promise.allSettled(starting)
    for (const release of releases.toReversed()) await release().catch((error: unknown) => say(String(error)))
  })
  return { say, file: name => join(directory, name), service, bare, parts, kafka, end }
}

type Started = {
  readonly process: ChildProcess
  /** Resolves to the line before `ready`. */
  readonly ready: Promise<string | undefined>
}

const startNode = (args: readonly string[], env: Readonly<Record<string, string>>): Started => {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  // However this process ends, short of being killed, nothing of it stays behind.
  process.once('exit', () => child.kill('SIGTERM'))
  const said: string[] = []
  const ready = new Promise<string | undefined>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      createInterface({ input: stream }).on('line', line => {
        if (line === 'ready') resolve(said.at(-1))
        if (said.push(line) > SAID_LINES_MAX) said.shift()
      })
    child.once('close', code => reject(new Error(`${args.at(-1)} ended with ${code}: ${said.join('\n')}`)))
  })
  return { process: child, ready }
}

const stopped = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return
  const late = setTimeout(() => child.kill('SIGKILL'), STOP_MAX_MS)
  child.kill('SIGTERM')
  await once(child, 'exit')
  clearTimeout(late)
}
