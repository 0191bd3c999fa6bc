import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Addresses, readAddresses } from '../../src/addresses.ts'
import { mintDevToken } from '../../src/embedded/issuer/devToken.ts'
import type { EventStore } from '../../src/ports.ts'
import { SCOPES } from '../../src/identity/principal.ts'
import { aggregates } from '../../streams/index.ts'

/** The whole service, for tests: every part real, in a directory of its own. */

export type TestService = {
  readonly api: string
  readonly addresses: Addresses
  readonly dataDir: string
  /** A token of the service's own issuer. Everything is permitted unless `scopes` says otherwise. */
  readonly token: (who?: Partial<Who>) => Promise<string>
}
export type Who = { tenant: string; subject: string; scopes: readonly string[]; user: boolean }

export const temporaryDirectory = (): Promise<string> => mkdtemp(join(tmpdir(), 'ledger-test-'))

const AUDIENCE = 'payment-ledger'

const tokensOf =
  (dataDir: string, issuer: string): TestService['token'] =>
  ({ tenant = 'acme', subject = 'tester', scopes = SCOPES, user = false } = {}) =>
    mintDevToken({ dataDir, issuer, audience: AUDIENCE, tenant, subject, scopes, user })

/** The tests share one address and few callers; and none of them may see the log move because an hour has ended. */
const UNLIMITED = {
  MANIFEST_EVERY: '36500d',
  RATE_LIMITS: ['default', 'payments', 'exports', 'auth_failures', 'api_keys']
    .map(policy => `${policy}=100000000/60`)
    .join(','),
  EXPORTS_AT_ONCE: '1000',
  API_KEYS_PER_TENANT: '1000',
  SUBSCRIPTIONS_PER_TENANT: '9999',
}

let shared: Promise<ServiceProcess> | undefined

/**
 * One service for all files that a process runs, started by the first that asks: tests keep apart by tenant. It is a process
 * of its own, so that it does not take the work of the tests for an overload of its event loop.
 */
export const sharedService = (): Promise<TestService> =>
  (shared ??= temporaryDirectory().then(folder => startProcess(folder)))

/** For the root hook. */
export const closeSharedService = async (): Promise<void> => {
  const service = await shared?.catch(() => undefined)
  if (service === undefined) return
  const how = await service.end('SIGTERM')
  if (how !== 0) throw new Error(`The shared service did not end in order (${how}):\n${service.output()}`)
  await rm(service.dataDir, { recursive: true, force: true })
}

const QUIET_MS = 300

/** The position of the store once nothing moves it any more: an order completes a little after its invoice is paid. */
export const quietHead = async (store: Pick<EventStore, 'head'>): Promise<bigint> => {
  for (let head = await store.head(); ; ) {
    await sleep(QUIET_MS)
    const now = await store.head()
    if (now === head) return head
    head = now
  }
}

/** The auditors' records of refusals are no entries in the books. */
const BOOKS = Object.keys(aggregates).filter(category => category !== 'access')

/** What was written into the books behind this position: a refusal must leave nothing there. */
export const writtenSince = async (store: EventStore, position: bigint): Promise<string[]> => {
  const types: string[] = []
  const enough = new AbortController()
  for await (const item of store.subscribe({ after: position, categories: BOOKS, signal: enough.signal })) {
    if (item.kind === 'caught_up') break
    if (item.kind === 'event') types.push(item.event.type)
  }
  enough.abort()
  return types
}

export type ServiceProcess = TestService & {
  readonly pid: number
  /** What it has printed, both streams. */
  readonly output: () => string
  /** Sends the signal and resolves with the exit code, or with the signal that ended it. */
  readonly end: (signal: NodeJS.Signals) => Promise<number | NodeJS.Signals>
  /** Resolves when it has ended, for whatever reason. */
  readonly ended: Promise<number | NodeJS.Signals>
}

const main = new URL('../../src/main.ts', import.meta.url).pathname

/** The service as a process of its own, as `npm start` runs it: what the tests of faults kill. */
export const startProcess = async (
  dataDir: string,
  env: Readonly<Record<string, string>> = {},
): Promise<ServiceProcess> => {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', main], {
    env: { ...process.env, NODE_ENV: 'test', PORT: '0', LEDGER_DATA_DIR: dataDir, ...UNLIMITED, ...env },
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
    end: signal => {
      child.kill(signal)
      return ended
    },
  }
}
