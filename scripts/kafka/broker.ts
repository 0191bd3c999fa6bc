import { type ChildProcess, execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { access, constants, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { endProcess, hasEnded } from '../../src/childProcesses/endProcess.ts'
import { type HeldPort, holdPort } from '../../src/embedded/freePorts.ts'
import { StartupError, systemCode } from '../../src/lib/startupError.ts'
import { ensureJars, requireJava } from './jars.ts'
import { classpathOf, clearLeftover, LOG, PROPERTIES, startJvm } from './jvm.ts'
import { type Certified, type Ports, serverProperties, type Users, usersOf } from './settings.ts'

export type KafkaOptions = {
  /** The port of the plaintext listener; 0, the default, takes a free one. */
  readonly port?: number
  readonly dataDir: string
  /** The advertised port of the plaintext listener, for a proxy in front of it. */
  readonly advertisedPort?: number
  /**
   * Adds a SASL/PLAIN listener and enables ACLs. `users` are passwords by name, in addition to the default users.
   * `certified`: adds two that use TLS: one with SASL, and one that asks its clients for a certificate.
   */
  readonly sasl?: { readonly port?: number; readonly users?: Users; readonly certified?: Certified } | undefined
  /** The folder of the jars; .data/kafka-libs of the repository by default. */
  readonly libsDir?: string
  /** Receives a line for each slow step. */
  readonly log?: (line: string) => void
}

/** After this time a broker that was told to end is killed. */
const STOP_GRACE_MS = 20_000
const LIBS = fileURLToPath(new URL('../../.data/kafka-libs', import.meta.url))
const HOST = '127.0.0.1'
const LOG_DIR = 'log'
const START_TIMEOUT_MS = 180_000
const START_POLL_MS = 50
const CLUSTER_ID_BYTES = 16
const OUTPUT_MAX_BYTES = 16_777_216
const STARTED = 'Kafka Server started'
const LOCKED = 'Failed to acquire lock'

const run = promisify(execFile)

const refusal = (port: number, error: unknown): StartupError =>
  systemCode(error) === 'EADDRINUSE'
    ? new StartupError(
        `Port ${port} of 127.0.0.1 is in use; end what listens there, or choose another one with --port.`,
      )
    : new StartupError(`Port ${port} of 127.0.0.1 cannot be used: ${String(error)}`)

/** Holds all ports at the same time, so that no two are equal and a used port is reported before the start. */
const reserve = async (ports: readonly number[]): Promise<number[]> => {
  const held: HeldPort[] = []
  try {
    for (const port of ports)
      held.push(
        await holdPort(port, HOST).catch((error: unknown) => {
          throw refusal(port, error)
        }),
      )
    return held.map(({ port }) => port)
  } finally {
    await Promise.all(held.map(({ release }) => release()))
  }
}

const portsFor = async (options: KafkaOptions): Promise<Ports> => {
  const ofSasl = options.sasl === undefined ? [] : [options.sasl.port ?? 0]
  const ofTls = options.sasl?.certified === undefined ? [] : [0, 0]
  const [plain = 0, controller = 0, sasl, saslSsl, ssl] = await reserve([options.port ?? 0, 0, ...ofSasl, ...ofTls])
  return { plain, controller, advertised: options.advertisedPort, sasl, saslSsl, ssl }
}

/** Formats in a temporary folder and renames it, so that an interrupted start leaves nothing that looks formatted. */
const formatOnce = async (dataDir: string, libsDir: string, ports: Ports): Promise<void> => {
  const final = join(dataDir, LOG_DIR)
  if (existsSync(final)) return
  const fresh = `${LOG_DIR}.new`
  await rm(join(dataDir, fresh), { recursive: true, force: true })
  const settings = join(dataDir, 'format.properties')
  await writeFile(settings, serverProperties(ports, fresh))
  const clusterId = randomBytes(CLUSTER_ID_BYTES).toString('base64url')
  // One argument, because an id may begin with a hyphen.
  const format = ['kafka.tools.StorageTool', 'format', '--standalone', `--cluster-id=${clusterId}`, '-c', settings]
  // The tool prints all its settings, so its output is shown only if it fails.
  const tool = run('java', ['-cp', classpathOf(libsDir), ...format], { cwd: dataDir, maxBuffer: OUTPUT_MAX_BYTES })
  await tool.catch((error: unknown) => {
    throw new StartupError(`Kafka could not format ${dataDir}: ${String(error).split('\n').at(-1)}`, error)
  })
  await rename(join(dataDir, fresh), final)
  await rm(settings)
}

const causeOfDeath = (log: string, dataDir: string): StartupError => {
  if (log.includes(LOCKED)) return new StartupError(`Another broker runs on ${dataDir}; give another --data-dir.`)
  const reason = /^Caused by: (.+)$/m.exec(log)?.[1] ?? /^(?:\S+Exception|\S+Error): .+$/m.exec(log)?.[0]
  return new StartupError(`Kafka ended while it started: ${reason ?? 'no reason given'} (see ${join(dataDir, LOG)}).`)
}

const awaitStarted = async (jvm: ChildProcess, dataDir: string): Promise<void> => {
  const deadline = Date.now() + START_TIMEOUT_MS
  for (;;) {
    const ended = hasEnded(jvm)
    const log = await readFile(join(dataDir, LOG), 'utf8')
    if (log.includes(STARTED)) return
    if (ended) throw causeOfDeath(log, dataDir)
    if (Date.now() > deadline) {
      jvm.kill('SIGKILL')
      throw new StartupError(`Kafka did not start within ${START_TIMEOUT_MS / 1000} s (see ${join(dataDir, LOG)}).`)
    }
    await delay(START_POLL_MS)
  }
}

/** Fetches the jars, once. Throws a StartupError if that fails, or if there is no Java that can run them. */
export const prepareKafka = async (log: (line: string) => void, libsDir: string = LIBS): Promise<void> => {
  await requireJava()
  await ensureJars(libsDir, log)
}

/** Formats the storage of a new node in `dataDir`, without a start. A start there keeps it, whatever its ports are. */
export const formatStorage = async (dataDir: string, libsDir: string = LIBS): Promise<void> => {
  await prepareKafka(() => undefined, libsDir)
  const [plain = 0, controller = 0] = await reserve([0, 0])
  await formatOnce(await openFolder(dataDir), libsDir, { plain, controller })
}

const openFolder = async (path: string): Promise<string> => {
  const dataDir = resolve(path)
  try {
    await mkdir(dataDir, { recursive: true })
    await access(dataDir, constants.W_OK)
    return dataDir
  } catch (error) {
    throw new StartupError(`The data directory ${dataDir} cannot be written: ${systemCode(error)}.`, error)
  }
}

/** Resolves when it accepts requests. Throws a StartupError if Java, Maven, a port or the folder is missing. */
export const startKafka = async (options: KafkaOptions): Promise<Kafka> => {
  const libsDir = resolve(options.libsDir ?? LIBS)
  await requireJava()
  const dataDir = await openFolder(options.dataDir)
  await clearLeftover(dataDir)
  const ports = await portsFor(options)
  await ensureJars(libsDir, options.log ?? (() => undefined))
  const users = options.sasl === undefined ? undefined : await usersOf(dataDir, options.sasl.users ?? {})
  await formatOnce(dataDir, libsDir, ports)
  await writeFile(
    join(dataDir, PROPERTIES),
    serverProperties(ports, LOG_DIR, { users, certified: options.sasl?.certified }),
    { mode: 0o600 },
  )
  const jvm = await startJvm(dataDir, libsDir)
  await awaitStarted(jvm, dataDir)
  return running(jvm, ports, users)
}

const running = (jvm: ChildProcess, ports: Ports, users: Users | undefined) => {
  const ended = hasEnded(jvm) ? Promise.resolve() : once(jvm, 'exit').then(() => undefined)
  const end = (signal: NodeJS.Signals): Promise<void> => endProcess(jvm, signal, STOP_GRACE_MS)
  const sasl = users &&
    ports.sasl !== undefined && {
      mechanism: 'plain' as const,
      brokers: [`127.0.0.1:${ports.sasl}`],
      /** Those of the listener that uses TLS. */
      secureBrokers: ports.saslSsl === undefined ? [] : [`127.0.0.1:${ports.saslSsl}`],
      /** Those of the listener that asks its clients for a certificate. */
      mutualBrokers: ports.ssl === undefined ? [] : [`127.0.0.1:${ports.ssl}`],
      users,
    }
  return {
    brokers: [`127.0.0.1:${ports.advertised ?? ports.plain}`],
    ...(sasl && { sasl }),
    pid: jvm.pid ?? 0,
    /** Resolves when the process has ended, for any reason. */
    ended,
    /** Shuts the broker down and waits for its end; kills it when that takes too long. */
    stop: () => end('SIGTERM'),
    /** Kills the process, as a power failure would. */
    kill: () => end('SIGKILL'),
  }
}
export type Kafka = ReturnType<typeof running>
