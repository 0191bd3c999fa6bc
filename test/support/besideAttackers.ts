import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Target } from './attackerProcess.ts'
import { anOrder, newKey } from './client.ts'
import { expiredToken } from './expiredToken.ts'
import { type ServiceProcess, startProcess, temporaryDirectory } from './service.ts'
import { removeFolder } from './folders.ts'

/**
 * Measures a normal client beside two attackers, with and without attacks in alternation, so that both samples have the
 * same machine.
 */

const ATTACKERS = ['mallory', 'm'.repeat(200)]
/** Below every rate limit. */
const PAUSE_MS = 20
/** The limits of the default configuration, which the tests' services raise. */
const LIMITS = {
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
      const asked = request(`${api}${path}`, { agent, method, headers }, answer => {
        let received = ''
        answer.setEncoding('utf8').on('data', chunk => (received += chunk))
        answer.on('end', () => {
          const status = answer.statusCode ?? 0
          statuses[status] = (statuses[status] ?? 0) + 1
          resolve({ status, body: JSON.parse(received), etag: answer.headers.etag ?? '' })
        })
      })
      asked.on('error', reject)
      asked.end(text)
    })

  /** The requests of one paid order, until one is refused; adds the duration of each in milliseconds. */
  const payOrder = async (times: number[]): Promise<void> => {
    const timed = async (asking: () => Promise<Answer>): Promise<Answer> => {
      const from = performance.now()
      const answer = await asking()
      times.push(performance.now() - from)
      await sleep(PAUSE_MS)
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

  const workFor = async (timeMs: number): Promise<number[]> => {
    const times: number[] = []
    const until = performance.now() + timeMs
    while (performance.now() < until)
      await payOrder(times).catch((error: unknown) => {
        if (!(error instanceof Refused)) throw error
      })
    return times
  }
  return { workFor, statuses }
}

const startAttacker = async (service: ServiceProcess, subject: string): Promise<ChildProcess> => {
  const tenant = `attackers-${subject.slice(0, 10)}`
  const target: Target = {
    api: service.api.replace('localhost', '127.0.0.1'),
    token: await service.token({ tenant, subject }),
    withoutScope: await service.token({ tenant, subject: `reader-${subject}`, scopes: ['ledger:read'] }),
    expired: await expiredToken(service, tenant),
  }
  const child = fork(new URL('attackerProcess.ts', import.meta.url), [JSON.stringify(target)], { execArgv: [] })
  await once(child, 'message')
  return child
}

export type Turns = { readonly rounds: number; readonly roundMs: number; readonly settleMs: number }

export const measureBesideAttackers = async ({ rounds, roundMs, settleMs }: Turns): Promise<Measured> => {
  const dataDir = await temporaryDirectory()
  const service = await startProcess(dataDir, LIMITS)
  const attackers: ChildProcess[] = []
  try {
    for (const subject of ATTACKERS) attackers.push(await startAttacker(service, subject))
    const token = await service.token({ tenant: 'normal', subject: 'normal' })
    const { workFor, statuses } = createNormalClient(service.api, token)
    await workFor(settleMs)
    const measured: Round[] = []
    let reports: object[] = []
    for (let round = 0; round < rounds; round++) {
      const alone = await workFor(roundMs)
      for (const attacker of attackers) attacker.send('begin')
      await sleep(settleMs)
      const attacked = await workFor(roundMs)
      const replies = attackers.map(async attacker => (await once(attacker, 'message'))[0] as object)
      for (const attacker of attackers) attacker.send('pause')
      reports = await Promise.all(replies)
      measured.push({ alone, attacked })
      await sleep(settleMs)
    }
    return { rounds: measured, statuses, attackers: reports }
  } finally {
    for (const attacker of attackers) attacker.kill()
    await service.end('SIGTERM')
    await removeFolder(dataDir)
  }
}

export const quantile = (times: readonly number[], fraction: number): number =>
  times.toSorted((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * fraction))] ?? 0
export const median = (values: readonly number[]): number => quantile(values, 0.5)
