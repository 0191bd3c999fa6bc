import { fork } from 'node:child_process'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { setPriority } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { ATTACKING_TENANT, type Target } from '../soak/attacks/attack.ts'
import type { Target as MixedTarget } from './attackerProcess.ts'
import { anOrder, newKey } from './client.ts'
import { expiredToken } from './expiredToken.ts'
import { type ServiceProcess, startProcess, temporaryDirectory } from './service.ts'
import { removeFolder } from './folders.ts'
import { residentMib } from './residentMemory.ts'

/**
 * Measures a normal client beside two attackers, with and without attacks in alternation, so that both samples have the
 * same machine.
 */

const ATTACKERS = ['mallory', 'm'.repeat(200)]
/** Below every rate limit. */
const PAUSE_MS = 20
/** The limits of the default configuration, which the tests' services raise. */
const DEFAULT_LIMITS = {
  RATE_LIMITS: '',
  CONCURRENCY_LIMITS: '',
  API_KEYS_PER_TENANT: '100',
  SUBSCRIPTIONS_PER_TENANT: '50',
}

export type Round = { readonly alone: readonly number[]; readonly attacked: readonly number[] }
export type Measured = {
  readonly rounds: readonly Round[]
  /** The number of responses to the normal client by status. */
  readonly statuses: Readonly<Record<number, number>>
  readonly attackers: readonly object[]
  readonly memoryMib: MemoryMib
}

type Answer = { readonly status: number; readonly body: { readonly id?: string }; readonly etag: string }

/** Ends the order of a request that was refused; its status is counted. */
class Refused extends Error {}

const agent = new Agent({ keepAlive: true })

const createNormalClient = (api: string, token: string) => {
  const statuses: Record<number, number> = {}
  const ask = (method: string, path: string, body?: object, more: object = {}): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const text = body && JSON.stringify(body)
      const json = text ? { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) } : {}
      const headers = { authorization: `Bearer ${token}`, ...json, ...more }
      const outgoing = request(`${api}${path}`, { agent, method, headers }, answer => {
        let received = ''
        answer.setEncoding('utf8').on('data', chunk => (received += chunk))
        answer.on('end', () => {
          const status = answer.statusCode ?? 0
          statuses[status] = (statuses[status] ?? 0) + 1
          resolve({ status, body: JSON.parse(received), etag: answer.headers.etag ?? '' })
        })
      })
      outgoing.on('error', reject)
      outgoing.end(text)
    })

  /** The requests of one paid order, until one is refused; adds the duration of each in milliseconds. */
  const payOrder = async (times: number[], pauseMs: number): Promise<void> => {
    const timed = async (asking: () => Promise<Answer>): Promise<Answer> => {
      const from = performance.now()
      const answer = await asking()
      times.push(performance.now() - from)
      await sleep(pauseMs)
      if (answer.status >= 400) throw new Refused()
      return answer
    }
    const order = await timed(() => ask('POST', '/orders', anOrder()))
    await timed(() => ask('GET', `/orders/${order.body.id}`))
    const invoice = await timed(() => ask('POST', '/invoices', { order_id: order.body.id }))
    const path = `/invoices/${invoice.body.id}`
    await timed(() => ask('POST', `${path}:approve`, {}, { 'if-match': invoice.etag }))
    const payment = { invoice_id: invoice.body.id, amount: 900, currency: 'USD' }
    await timed(() => ask('POST', '/payments', payment, { 'idempotency-key': newKey() }))
    await timed(() => ask('GET', path))
    await timed(() => ask('GET', '/payments?limit=10'))
  }

  const workFor = async (timeMs: number, pauseMs = PAUSE_MS): Promise<number[]> => {
    const times: number[] = []
    const until = performance.now() + timeMs
    while (performance.now() < until)
      await payOrder(times, pauseMs).catch((error: unknown) => {
        if (!(error instanceof Refused)) throw error
      })
    return times
  }
  return { workFor, statuses }
}

/** Attackers have their own processors; on this machine they take what the service leaves. */
const LOWEST_PRIORITY = 19

/** A process that attacks from the message `begin` to the message `pause`, which it answers with a report. */
type Attacker = { readonly begin: () => void; readonly pause: () => Promise<object>; readonly kill: () => void }

const startAttacker = async (program: string, parameters: readonly string[]): Promise<Attacker> => {
  const child = fork(new URL(program, import.meta.url), parameters, {
    execArgv: ['--disable-warning=ExperimentalWarning'],
  })
  setPriority(child.pid ?? 0, LOWEST_PRIORITY)
  await once(child, 'message')
  return {
    begin: () => void child.send('begin'),
    pause: async () => {
      const reply = once(child, 'message')
      child.send('pause')
      return (await reply)[0] as object
    },
    kill: () => void child.kill(),
  }
}

const startMixedAttacker = async (service: ServiceProcess, subject: string): Promise<Attacker> => {
  const tenant = `attackers-${subject.slice(0, 10)}`
  const target: MixedTarget = {
    api: loopback(service.api),
    token: await service.token({ tenant, subject }),
    withoutScope: await service.token({ tenant, subject: `reader-${subject}`, scopes: ['ledger:read'] }),
    expired: await expiredToken(service, tenant),
  }
  return startAttacker('attackerProcess.ts', [JSON.stringify(target)])
}

const loopback = (api: string): string => api.replace('localhost', '127.0.0.1')

const ATTACKING_CALLERS = 100

/** Starts the process of the attack of a file in test/soak/attacks, which prepares it. */
const startAttackOf =
  (file: URL) =>
  async (service: ServiceProcess): Promise<readonly Attacker[]> => {
    const callers = Array.from({ length: ATTACKING_CALLERS }, (_, index) => `caller-${index}`)
    const target: Target = {
      api: loopback(service.api),
      tokens: await Promise.all(callers.map(subject => service.token({ tenant: ATTACKING_TENANT, subject }))),
      databaseUrl: service.addresses.postgres,
    }
    return [await startAttacker('../soak/attacks/attackProcess.ts', [file.href, JSON.stringify(target)])]
  }

export type Turns = {
  readonly rounds: number
  readonly roundMs: number
  readonly settleMs: number
  /** After the attacks, before the memory is measured for the last time. */
  readonly recoveryMs: number
}

/**
 * The resident memory of the service in MiB: after the greatest ordinary load, the most beside the attacks, and some time
 * after the last.
 */
export type MemoryMib = { readonly before: number; readonly most: number; readonly after: number }

const ORDINARY_CLIENTS = 32
const MEMORY_EVERY_MS = 250

const watchMemory = async (pid: number, recoveryMs: number) => {
  const before = await residentMib(pid)
  let most = before
  const timer = setInterval(() => void residentMib(pid).then(mib => (most = Math.max(most, mib))), MEMORY_EVERY_MS)
  return {
    end: async (): Promise<MemoryMib> => {
      clearInterval(timer)
      await sleep(recoveryMs)
      return { before, most, after: await residentMib(pid) }
    },
  }
}

const measure = async (
  { rounds, roundMs, settleMs }: Turns,
  attackers: readonly Attacker[],
  { workFor }: Pick<ReturnType<typeof createNormalClient>, 'workFor'>,
): Promise<Pick<Measured, 'rounds' | 'attackers'>> => {
  const measured: Round[] = []
  let reports: object[] = []
  for (let round = 0; round < rounds; round++) {
    const alone = await workFor(roundMs)
    for (const attacker of attackers) attacker.begin()
    await sleep(settleMs)
    const attacked = await workFor(roundMs)
    reports = await Promise.all(attackers.map(attacker => attacker.pause()))
    measured.push({ alone, attacked })
    await sleep(settleMs)
  }
  return { rounds: measured, attackers: reports }
}

/** As much ordinary load as the service takes: a process that has just started grows under any load. */
const warmUp = async (service: ServiceProcess, { roundMs }: Turns): Promise<void> => {
  const subjects = Array.from({ length: ORDINARY_CLIENTS }, (_, index) => `ordinary-${index}`)
  const tokens = await Promise.all(subjects.map(subject => service.token({ tenant: 'ordinary', subject })))
  await Promise.all(tokens.map(token => createNormalClient(service.api, token).workFor(roundMs, 0)))
}

const measureBeside = async (
  turns: Turns,
  start: (service: ServiceProcess) => Promise<readonly Attacker[]>,
): Promise<Measured> => {
  const dataDir = await temporaryDirectory()
  const service = await startProcess(dataDir, DEFAULT_LIMITS)
  let attackers: readonly Attacker[] = []
  try {
    attackers = await start(service)
    const normal = createNormalClient(service.api, await service.token({ tenant: 'normal', subject: 'normal' }))
    await warmUp(service, turns)
    await normal.workFor(turns.settleMs)
    const memory = await watchMemory(service.pid, turns.recoveryMs)
    const measured = await measure(turns, attackers, normal)
    return { ...measured, statuses: normal.statuses, memoryMib: await memory.end() }
  } finally {
    for (const attacker of attackers) attacker.kill()
    await service.end('SIGTERM')
    await removeFolder(dataDir)
  }
}

/** Two attackers who mix many kinds of request. */
export const measureBesideAttackers = (turns: Turns): Promise<Measured> =>
  measureBeside(turns, service => Promise.all(ATTACKERS.map(subject => startMixedAttacker(service, subject))))

/** The attack of a file in test/soak/attacks. */
export const measureBesideAttack = (turns: Turns, file: URL): Promise<Measured> =>
  measureBeside(turns, startAttackOf(file))

export const quantile = (times: readonly number[], fraction: number): number =>
  times.toSorted((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * fraction))] ?? 0
export const median = (values: readonly number[]): number => quantile(values, 0.5)
