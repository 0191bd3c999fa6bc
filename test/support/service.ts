import { spawn } from 'node:child_process'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Addresses, readAddresses } from '../../src/compose/addressesFile.ts'
import { mintDevToken } from '../../src/embedded/issuer/devToken.ts'
import type { EventStore, JsonObject } from '../../src/ports.ts'
import { SCOPES } from '../../src/identity/principal.ts'
import { aggregates } from '../../streams/index.ts'
import { removeFolder } from './folders.ts'
import { UNLIMITED_SETTINGS } from './limits.ts'
import { WITHOUT_LINKS } from './nodeFlags.ts'
import { putPreparedCluster } from './preparedCluster.ts'

/** The whole service for tests, with real dependencies, in its own directory. */

export type TestService = {
  readonly api: string
  readonly addresses: Addresses
  readonly dataDir: string
  /** A token of the service's own issuer, with all scopes unless `scopes` is given. */
  readonly token: (holder?: Partial<Holder>) => Promise<string>
}
export type Holder = { tenant: string; subject: string; scopes: readonly string[]; user: boolean }

export const temporaryDirectory = (): Promise<string> => mkdtemp(join(tmpdir(), 'ledger-test-'))

const AUDIENCE = 'payment-ledger'

const tokensOf =
  (dataDir: string, issuer: string): TestService['token'] =>
  ({ tenant = 'acme', subject = 'tester', scopes = SCOPES, user = false } = {}) =>
    mintDevToken({ dataDir, issuer, audience: AUDIENCE, tenant, subject, scopes, user })

/**
 * Rate limits are raised, because all tests share one address and few callers. Manifests are not sealed, because they
 * would append to the log during a test.
 */
const UNLIMITED = {
  EVIDENCE_HEADS_EVERY: '1s',
  OPERATORS_TENANT: 'variants',
  MANIFEST_EVERY: '36500d',
  ...UNLIMITED_SETTINGS,
  API_KEYS_PER_TENANT: '1000',
  SUBSCRIPTIONS_PER_TENANT: '9999',
}

let shared: Promise<ServiceProcess> | undefined

/**
 * The service that all files of a process share, started by the first that needs it: tests isolate themselves by
 * tenant. It is a separate process, so that the tests' own work does not count as overload of its event loop.
 */
export const sharedService = (): Promise<TestService> =>
  (shared ??= temporaryDirectory().then(folder => startProcess(folder)))

/** For the root hook. */
export const closeSharedService = async (): Promise<void> => {
  const service = await shared?.catch(() => undefined)
  if (service === undefined) return
  const how = await service.end('SIGTERM')
  if (how !== 0) throw new Error(`The shared service did not end in order (${how}):\n${service.output()}`)
  await removeFolder(service.dataDir)
}

const QUIET_MS = 300

/** The position of the store once nothing was appended for a while. Events of other suites may still follow. */
export const quietHead = async (store: Pick<EventStore, 'head'>): Promise<bigint> => {
  for (let head = await store.head(); ; ) {
    await sleep(QUIET_MS)
    const now = await store.head()
    if (now === head) return head
    head = now
  }
}

const CATEGORIES = Object.keys(aggregates)
/** Audit records of denials are not business data. */
const BUSINESS_CATEGORIES = CATEGORIES.filter(category => category !== 'access')

type Selection = {
  readonly after: bigint
  readonly categories: readonly string[]
  readonly isSelected: (metadata: JsonObject) => boolean
}

const typesOf = async (store: EventStore, { after, categories, isSelected }: Selection): Promise<string[]> => {
  const types: string[] = []
  const enough = new AbortController()
  for await (const item of store.subscribe({ after, categories, signal: enough.signal })) {
    if (item.kind === 'caught_up') break
    if (item.kind === 'event' && isSelected(item.event.metadata)) types.push(item.event.type)
  }
  enough.abort()
  return types
}

/** The types of the business events of a tenant after this position. */
export const writtenSince = (store: EventStore, position: bigint, tenant: string): Promise<string[]> =>
  typesOf(store, {
    after: position,
    categories: BUSINESS_CATEGORIES,
    isSelected: metadata => metadata['tenant'] === tenant,
  })

export type WrittenBy = {
  readonly after: bigint
  /** The responses to the requests. */
  readonly answers: readonly { readonly headers: Headers }[]
  readonly withAuditRecords?: boolean
}

/**
 * The types of the events after this position that these requests wrote, by their correlation ids: events that earlier
 * requests or other suites caused do not count.
 */
export const writtenBy = (store: EventStore, { after, answers, withAuditRecords }: WrittenBy): Promise<string[]> => {
  const ids = new Set<unknown>(answers.map(({ headers }) => headers.get('x-correlation-id') ?? 'none'))
  return typesOf(store, {
    after,
    categories: withAuditRecords ? CATEGORIES : BUSINESS_CATEGORIES,
    isSelected: metadata => ids.has(metadata['$correlationId']),
  })
}

export type ServiceProcess = TestService & {
  readonly pid: number
  /** The text of both output streams. */
  readonly output: () => string
  /** Ends the reader of both streams, as `head` does. */
  readonly closeOutput: () => void
  /** Sends the signal and resolves to the exit code, or to the signal that ended it. */
  readonly end: (signal: NodeJS.Signals) => Promise<number | NodeJS.Signals>
  /** Resolves when it has ended, for any reason. */
  readonly ended: Promise<number | NodeJS.Signals>
}

/** Without an address of its own the service starts Postgres, whose cluster is a copy here, in place of an initdb. */
const preparePostgres = async (dataDir: string, env: Readonly<Record<string, string>>): Promise<void> => {
  const hasAll = env['DATABASE_URL'] !== undefined && env['EVENTSTORE_URL'] !== undefined
  if (!hasAll) await putPreparedCluster(join(dataDir, 'postgres'))
}

const main = new URL('../../src/main.ts', import.meta.url).pathname

/** The service as a separate process, like `npm start`, so that a test can kill it. */
export const startProcess = async (
  dataDir: string,
  env: Readonly<Record<string, string>> = {},
): Promise<ServiceProcess> => {
  await preparePostgres(dataDir, env)
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', ...WITHOUT_LINKS, main], {
    env: {
      ...process.env,
      NODE_ENV: 'test',
      PORT: '0',
      LEDGER_PROCESSES: '1',
      LEDGER_DATA_DIR: dataDir,
      ...UNLIMITED,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  const ready = Promise.withResolvers<void>()
  for (const stream of [child.stdout, child.stderr])
    createInterface({ input: stream }).on('line', line => {
      output += `${line}\n`
      if (line === 'ready') ready.resolve()
    })
  const ended = new Promise<number | NodeJS.Signals>(resolve =>
    child.once('close', (code, signal) => resolve(signal ?? code ?? 0)),
  )
  void ended.then(how => ready.reject(new Error(`The service ended (${how}) before it was ready:\n${output}`)))
  await ready.promise
  const addresses = await readAddresses(dataDir)
  if (addresses === undefined || child.pid === undefined) throw new Error('The service is ready and has no addresses.')
  return {
    api: addresses.api,
    addresses,
    dataDir,
    token: tokensOf(dataDir, addresses.issuer),
    pid: child.pid,
    output: () => output,
    ended,
    closeOutput: () => {
      child.stdout.destroy()
      child.stderr.destroy()
    },
    end: signal => {
      child.kill(signal)
      return ended
    },
  }
}
