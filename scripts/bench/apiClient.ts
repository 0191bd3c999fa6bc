import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import pLimit from 'p-limit'
import { Client } from 'pg'
import { journals, projections } from '../../projections/index.ts'
import { mintDevToken } from '../../src/embedded/issuer/devToken.ts'
import { SCOPES } from '../../src/identity/principal.ts'
import { createLedgerClient, type LedgerClient } from '../client/src/index.ts'
import { type Answers, checkAnswers, createAnswers, type SentPayment } from './answers.ts'
import { requestOf } from './loadGenerator.ts'
import type { RunningService } from './harness.ts'

/** The client of the benchmarks: one tenant that prepares invoices through the API and pays them in parts. */

const AUDIENCE = 'payment-ledger'
const TENANT = 'bench'
/** The number of payments per invoice: enough to amortize the invoice, few enough that its stream is not contended. */
export const PARTS_PER_INVOICE = 20
export const PART_AMOUNT = 100
const PREPARING_CONCURRENCY = 32
/** A third of the life of a token. */
const TOKEN_RENEWAL_MS = 300_000

export type Caller = {
  /** Header lines, without line ends, with a token that is valid for some minutes. */
  readonly headers: () => readonly string[]
  /** Approved invoices, each to be paid in `PARTS_PER_INVOICE` parts. */
  readonly invoices: (count: number) => Promise<string[]>
  /** Every payment of this caller that was answered 201. */
  readonly answers: Answers
  /**
   * Waits for the feeds, so that one measurement does not slow the next one down; then throws if `answers` were wrong.
   */
  readonly checkAnswers: () => Promise<void>
  /**
   * Waits until the read models and the publisher have processed everything before this call. Throws if they do not.
   */
  readonly untilFeedsCaughtUp: () => Promise<void>
}

const callers = new WeakMap<RunningService, Promise<Caller>>()

/** The one caller of all measures of a service, because a caller expects all payments of its tenant to be its own. */
export const callerOf = (service: RunningService): Promise<Caller> => {
  const caller = callers.get(service) ?? createCaller(service, TENANT)
  callers.set(service, caller)
  return caller
}

/** A token that is renewed while it is still valid for a measurement. */
const renewedToken = async ({ addresses: { issuer }, dataDir }: RunningService, tenant: string) => {
  const claims = { tenant, subject: 'bench', scopes: SCOPES, user: true }
  const mint = (): Promise<string> => mintDevToken({ dataDir, issuer, audience: AUDIENCE, ...claims })
  let token = await mint()
  let mintedAtMs = performance.now()
  return {
    current: (): string => token,
    renew: async (): Promise<void> => {
      if (performance.now() - mintedAtMs < TOKEN_RENEWAL_MS) return
      token = await mint()
      mintedAtMs = performance.now()
    },
  }
}

/** Enough for a service that sheds load while it prepares. */
const RETRIES = { attemptsMax: 50 }

export const createCaller = async (service: RunningService, tenant: string): Promise<Caller> => {
  const { api, postgres } = service.addresses
  const token = await renewedToken(service, tenant)
  const ledger = createLedgerClient({ baseUrl: api, token: token.current, retry: RETRIES })
  return callerBy(ledger, {
    headers: () => [`authorization: Bearer ${token.current()}`],
    untilCaughtUp: async position => {
      await token.renew()
      await caughtUp(service, position)
    },
    check: answers => withClient(postgres, client => checkAnswers(client, tenant, answers)),
  })
}

type Means = {
  readonly headers: Caller['headers']
  readonly untilCaughtUp: (position: bigint) => Promise<void>
  readonly check: (answers: Answers) => Promise<void>
}

const callerBy = (ledger: LedgerClient, { headers, untilCaughtUp, check }: Means): Caller => {
  const lines = [{ sku: 'tea', quantity: 1, unit_amount: PARTS_PER_INVOICE * PART_AMOUNT }]
  const order = () => ledger.request('POST /orders', { body: { currency: 'USD', lines } })
  const invoice = async (): Promise<string> => {
    const body = { order_id: (await order()).data.id }
    const { data, etag } = await ledger.request('POST /invoices', { body })
    await ledger.request('POST /invoices/{id}:approve', { path: { id: data.id }, ifMatch: etag })
    return data.id
  }
  const answers = createAnswers()
  const untilFeedsCaughtUp = async (): Promise<void> => untilCaughtUp(BigInt((await order()).position))
  return {
    headers,
    invoices: async count => {
      const limit = pLimit(PREPARING_CONCURRENCY)
      return Promise.all(Array.from({ length: count }, () => limit(invoice)))
    },
    answers,
    untilFeedsCaughtUp,
    checkAnswers: async () => {
      await untilFeedsCaughtUp()
      await check(answers)
    },
  }
}

/** A request for a payment with a key of its own. */
export const paymentRequest = (headers: readonly string[], { invoice_id, amount, reference }: SentPayment): string => {
  const body = { invoice_id, amount, currency: 'USD', ...(reference !== null && { reference }) }
  return requestOf('POST', '/payments', [...headers, `idempotency-key: ${randomUUID()}`], JSON.stringify(body))
}

export const partOf = (invoice_id: string, withReference: boolean): SentPayment => ({
  invoice_id,
  amount: PART_AMOUNT,
  reference: withReference ? `bench-${randomUUID()}` : null,
})

export const withClient = async <T>(connectionString: string, work: (client: Client) => Promise<T>): Promise<T> => {
  const client = new Client({ connectionString })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

const FEEDS_POLL_MS = 100
const FEEDS_MAX_MS = 180_000
const CHECKPOINTS = 'select name, position::text as position from checkpoints order by name'

/** The checkpoints of the feeds that process every order. */
const FOLLOWERS = [projections.orders, projections.invoices, projections.payments, journals.facts].map(
  ({ name }) => name,
)

/** The other feeds process what remains for them when their checkpoints no longer move. */
const caughtUp = ({ addresses, publishes }: RunningService, position: bigint): Promise<void> =>
  withClient(addresses.postgres, async client => {
    const awaited = [...FOLLOWERS, ...(publishes ? ['publisher'] : [])]
    const deadline = performance.now() + FEEDS_MAX_MS
    for (let before = ''; performance.now() < deadline; await sleep(FEEDS_POLL_MS)) {
      const { rows } = await client.query<{ name: string; position: string }>(CHECKPOINTS)
      const positions = new Map(rows.map(row => [row.name, BigInt(row.position)]))
      const now = JSON.stringify(rows)
      if (now === before && awaited.every(name => (positions.get(name) ?? -1n) >= position)) return
      before = now
    }
    throw new Error(`The feeds did not catch up with position ${position} in ${FEEDS_MAX_MS} ms.`)
  })
