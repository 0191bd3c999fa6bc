import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import pLimit from 'p-limit'
import { Client } from 'pg'
import { mintDevToken } from '../../src/embedded/issuer/devToken.ts'
import { SCOPES } from '../../src/identity/principal.ts'
import { requestOf } from './loadGenerator.ts'
import type { RunningService } from './harness.ts'

/** The client of the benchmarks: one tenant that prepares invoices through the API and pays them in parts. */

const AUDIENCE = 'payment-ledger'
const TENANT = 'bench'
/** The number of payments per invoice: enough to amortize the invoice, few enough that its stream is not contended. */
export const PARTS_PER_INVOICE = 20
const PART_AMOUNT = 100
const PREPARING_CONCURRENCY = 32

export type Caller = {
  /** Header lines, without line ends. */
  readonly headers: readonly string[]
  /** Approved invoices, each to be paid in `PARTS_PER_INVOICE` parts. */
  readonly invoices: (count: number) => Promise<string[]>
}

export const callerOf = async ({ addresses, dataDir }: RunningService): Promise<Caller> => {
  const { issuer, api } = addresses
  const claims = { tenant: TENANT, subject: 'bench', scopes: SCOPES, user: true }
  const token = await mintDevToken({ dataDir, issuer, audience: AUDIENCE, ...claims })
  const post = async (path: string, body: object, headers: Readonly<Record<string, string>> = {}) => {
    const response = await fetch(`${api}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`POST ${path}: ${text}`)
    return { id: (JSON.parse(text) as { id: string }).id, etag: response.headers.get('etag') ?? '' }
  }
  const unit_amount = PARTS_PER_INVOICE * PART_AMOUNT
  const invoice = async (): Promise<string> => {
    const order = await post('/orders', { currency: 'USD', lines: [{ sku: 'tea', quantity: 1, unit_amount }] })
    const { id, etag } = await post('/invoices', { order_id: order.id })
    await post(`/invoices/${id}:approve`, {}, { 'if-match': etag })
    return id
  }
  const invoices = async (count: number): Promise<string[]> => {
    const limit = pLimit(PREPARING_CONCURRENCY)
    return Promise.all(Array.from({ length: count }, () => limit(invoice)))
  }
  return { headers: [`authorization: Bearer ${token}`], invoices }
}

/** A payment of one part, with a key and a reference of its own. */
export const paymentRequest = (headers: readonly string[], invoice_id: string): string => {
  const body = { invoice_id, amount: PART_AMOUNT, currency: 'USD', reference: `bench-${randomUUID()}` }
  return requestOf('POST', '/payments', [...headers, `idempotency-key: ${randomUUID()}`], JSON.stringify(body))
}

/** Each connection pays its own invoice, so that no two connections contend for one stream. */
export const payingRequests = (headers: readonly string[], invoices: string[], connections: number) => {
  const current = Array.from({ length: connections }, () => ({ invoice: '', left: 0 }))
  return (connection: number): string | undefined => {
    const mine = current[connection]
    if (mine === undefined) return undefined
    if (mine.left === 0) {
      const invoice = invoices.pop()
      if (invoice === undefined) return undefined
      mine.invoice = invoice
      mine.left = PARTS_PER_INVOICE
    }
    mine.left--
    return paymentRequest(headers, mine.invoice)
  }
}

const FEEDS_POLL_MS = 100
const FEEDS_MAX_MS = 60_000

/** Waits until every feed of the service has caught up, so that one measurement does not slow the next one down. */
export const waitForFeeds = async ({ addresses }: RunningService): Promise<void> => {
  const client = new Client({ connectionString: addresses.postgres })
  await client.connect()
  try {
    const deadline = performance.now() + FEEDS_MAX_MS
    for (let before = ''; performance.now() < deadline; await sleep(FEEDS_POLL_MS)) {
      const { rows } = await client.query('select name, position::text from checkpoints order by name')
      const now = JSON.stringify(rows)
      if (now === before) return
      before = now
    }
  } finally {
    await client.end()
  }
}
