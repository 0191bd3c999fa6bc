import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import pLimit from 'p-limit'
import { Client } from 'pg'
import { journals, projections } from '../../projections/index.ts'
import { mintDevToken } from '../../src/embedded/issuer/devToken.ts'
import { checkpointPositions } from '../../src/feeds/checkpoints.ts'
import { SCOPES } from '../../src/identity/principal.ts'
import { createLedgerClient } from '../client/src/index.ts'
import { checkAnswers, createAnswers, type SentPayment } from './answers.ts'
import { requestOf } from './loadGenerator.ts'
import type { RunningService } from './harness.ts'

const AUDIENCE = 'payment-ledger'
const TENANT = 'bench'
/** The number of payments per invoice: enough to amortize the invoice, few enough that its stream is not contended. */
export const PARTS_PER_INVOICE = 20
export const PART_AMOUNT = 100
const PREPARING_CONCURRENCY = 32
/** A third of the life of a token. */
const TOKEN_RENEWAL_MS = 300_000

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

export const createCaller = async (service: RunningService, tenant: string) => {
  const { api, postgres } = service.addresses
  const token = await renewedToken(service, tenant)
  const ledger = createLedgerClient({ baseUrl: api, token: token.current, retry: RETRIES })
  const lines = [{ sku: 'tea', quantity: 1, unit_amount: PARTS_PER_INVOICE * PART_AMOUNT }]
  const order = () => ledger.request('POST /orders', { body: { currency: 'USD', lines } })
  const invoice = async (): Promise<string> => {
    const body = { order_id: (await order()).data.id }
    const { data, etag } = await ledger.request('POST /invoices', { body })
    await ledger.request('POST /invoices/{id}:approve', { path: { id: data.id }, ifMatch: etag })
    return data.id
  }
  const answers = createAnswers()
  const untilFeedsCaughtUp = async (): Promise<void> => {
    const { position } = await order()
    await token.renew()
    await caughtUp(service, BigInt(position))
  }
  return {
    /** Header lines, without line ends, with a token that is valid for some minutes. */
    headers: (): readonly string[] => [`authorization: Bearer ${token.current()}`],
    /** Approved invoices, each to be paid in `PARTS_PER_INVOICE` parts. */
    invoices: (count: number): Promise<string[]> => {
      const limit = pLimit(PREPARING_CONCURRENCY)
      return Promise.all(Array.from({ length: count }, () => limit(invoice)))
    },
    /** Every payment of this caller that was answered 201. */
    answers,
    /** Waits until the read models and the publisher have processed everything before this call. Throws if they do not. */
    untilFeedsCaughtUp,
    /** Waits for the feeds, so that one measurement does not slow the next one down; then throws if `answers` were wrong. */
    checkAnswers: async (): Promise<void> => {
      await untilFeedsCaughtUp()
      await withClient(postgres, client => checkAnswers(client, tenant, answers))
    },
  }
}
export type Caller = Awaited<ReturnType<typeof createCaller>>

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

const FEEDS_MAX_MS = 180_000

/** The checkpoints of the feeds that process every order. */
const FOLLOWERS = [projections.orders, projections.invoices, projections.payments, journals.facts].map(
  ({ name }) => name,
)

const caughtUp = ({ addresses, publishes }: RunningService, position: bigint): Promise<void> => {
  const names = [...FOLLOWERS, ...(publishes ? ['publisher'] : [])]
  return untilFeedsReach(addresses.postgres, { names, position, pollMs: 100, maxMs: FEEDS_MAX_MS })
}

type Reached = {
  readonly names: readonly string[]
  readonly position: bigint
  readonly pollMs: number
  readonly maxMs: number
}

/** Waits for the named feeds to reach the position, and for all others until their checkpoints no longer move. */
export const untilFeedsReach = (databaseUrl: string, { names, position, pollMs, maxMs }: Reached): Promise<void> =>
  withClient(databaseUrl, async client => {
    const sql = async <R>(text: string) => (await client.query(text)).rows as R[]
    const deadlineMs = performance.now() + maxMs
    for (let before = ''; performance.now() < deadlineMs; await sleep(pollMs)) {
      const positions = await checkpointPositions(sql)
      const now = [...positions].map(([name, reached]) => `${name} ${reached}`).join()
      if (now === before && names.every(name => BigInt(positions.get(name) ?? -1) >= position)) return
      before = now
    }
    throw new Error(`The feeds did not catch up with position ${position} in ${maxMs} ms.`)
  })
