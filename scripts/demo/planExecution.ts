import { setTimeout as sleep } from 'node:timers/promises'
import pLimit from 'p-limit'
import { EffectUnknownError, type LedgerClient, LedgerError } from '../client/src/index.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { CURRENCY, type PlannedInvoice, type PlannedPayment } from './plan.ts'

/** An invoice is approved by another subject than the one that raised it. */
export type Identities = { readonly clerk: LedgerClient; readonly approver: LedgerClient }

/** The ids that one planned invoice got. */
export type InvoiceRun = {
  readonly planned: PlannedInvoice
  readonly orderId: string
  readonly invoiceId: string
  /** In the order of the planned payments. */
  readonly paymentIds: readonly string[]
}

export type Retries = { sent: number; replayed: number }

const CONCURRENCY = 8
const APPROVAL_ATTEMPTS_MAX = 3
const ACCEPTED_MAX_MS = 75_000
const ACCEPTED_PAUSE_MS = 500

/** Works on the items in order, CONCURRENCY at a time. After a failure no further item is begun. */
export const forEach = async <T>(
  items: readonly T[],
  work: (item: T, index: number) => Promise<void>,
): Promise<void> => {
  const limit = pLimit(CONCURRENCY)
  const workOn = async (item: T, index: number): Promise<void> => {
    try {
      await work(item, index)
    } catch (error) {
      limit.clearQueue()
      throw error
    }
  }
  await Promise.all(items.map((item, index) => limit(workOn, item, index)))
}

type Created = { readonly id: string; readonly etag: string; readonly replayed: boolean }
type Creation = { readonly data: { readonly id: string }; readonly etag: string; readonly headers: Headers }

/** A creation with a key. An expired key has no stored response, but names the resource that an earlier run created. */
const created = async (creation: Promise<Creation>): Promise<Created> => {
  try {
    const { data, etag, headers } = await creation
    return { id: data.id, etag, replayed: headers.get('idempotent-replayed') === 'true' }
  } catch (error) {
    const isExpired = error instanceof LedgerError && error.code === 'idempotency_key_expired'
    const id = isExpired ? error.headers.get('location')?.split('/').at(-1) : undefined
    if (id === undefined) throw error
    return { id, etag: '', replayed: true }
  }
}

type InvoiceState = { readonly state: string; readonly etag: string }

const readInvoice = async (ledger: LedgerClient, id: string): Promise<InvoiceState> => {
  const { data, etag } = await ledger.request('GET /invoices/{id}', { path: { id } })
  return { state: data.state, etag }
}

/** Another one was first, or the effect is unknown. */
const mustReadState = (error: unknown): boolean =>
  error instanceof EffectUnknownError || (error instanceof LedgerError && [409, 412].includes(error.status))

/** A replayed response shows the invoice as it was created, so the present state is read first. */
const approve = async ({ clerk, approver }: Identities, { id, etag, replayed }: Created): Promise<void> => {
  let invoice: InvoiceState = replayed ? await readInvoice(clerk, id) : { state: 'draft', etag }
  for (let attempt = 1; invoice.state === 'draft'; attempt++) {
    try {
      await approver.request('POST /invoices/{id}:approve', { path: { id }, ifMatch: invoice.etag })
      return
    } catch (error) {
      // A concurrent demo, or an approval whose response was lost, may have been first.
      if (!mustReadState(error) || attempt === APPROVAL_ATTEMPTS_MAX) throw error
      invoice = await readInvoice(clerk, id)
    }
  }
}

type Payment = { readonly planned: PlannedPayment; readonly invoiceId: string }

/** A payment that is accepted and not decided (202) is asked for again with its key. */
const decided = async (clerk: LedgerClient, { planned, invoiceId }: Payment): Promise<Creation> => {
  const { key, amount, reference } = planned
  const body = { invoice_id: invoiceId, amount: Number(amount), currency: CURRENCY, reference } as const
  const deadlineMs = performance.now() + ACCEPTED_MAX_MS
  while (performance.now() < deadlineMs) {
    const answer = await clerk.request('POST /payments', { body, idempotencyKey: key })
    if (answer.status === 201) return answer
    await sleep(ACCEPTED_PAUSE_MS)
  }
  throw new StartupError(`The payment with the key ${key} was not decided within ${ACCEPTED_MAX_MS / 1_000} s.`)
}

const send = (clerk: LedgerClient, payment: Payment): Promise<Created> => created(decided(clerk, payment))

const assertSamePayment = (key: string, first: string, again: string): void => {
  if (first !== again) throw new StartupError(`The key ${key} paid twice: ${first} and ${again}.`)
}

const pay = async (clerk: LedgerClient, payment: Payment, retries: Retries): Promise<string> => {
  if (payment.planned.retry !== 'at_once') return (await send(clerk, payment)).id
  const [first, again] = await Promise.all([send(clerk, payment), send(clerk, payment)])
  assertSamePayment(payment.planned.key, first.id, again.id)
  retries.sent += 1
  if (first.replayed || again.replayed) retries.replayed += 1
  return first.id
}

const runInvoice = async (callers: Identities, planned: PlannedInvoice, retries: Retries): Promise<InvoiceRun> => {
  const { clerk } = callers
  const { name, order, payments } = planned
  const { id: orderId } = await created(clerk.request('POST /orders', { body: order, idempotencyKey: `${name}-order` }))
  const body = { order_id: orderId, metadata: { source: name } }
  const invoice = await created(clerk.request('POST /invoices', { body, idempotencyKey: `${name}-invoice` }))
  await approve(callers, invoice)
  const paymentIds: string[] = []
  for (const payment of payments)
    paymentIds.push(await pay(clerk, { planned: payment, invoiceId: invoice.id }, retries))
  await refundPayment(clerk, planned, paymentIds[0])
  return { planned, orderId, invoiceId: invoice.id, paymentIds }
}

/** The refund has its own key, so that a second run refunds nothing again. */
const refundPayment = async (
  clerk: LedgerClient,
  { name, refund }: PlannedInvoice,
  paymentId: string | undefined,
): Promise<void> => {
  if (refund === 0n || paymentId === undefined) return
  const body = { amount: Number(refund), reason: 'The customer changed their mind.' }
  const input = { path: { id: paymentId }, body, idempotencyKey: `${name}-refund` }
  await created(clerk.request('POST /payments/{id}:refund', input))
}

const retryPayments = async (
  clerk: LedgerClient,
  { planned, invoiceId, paymentIds }: InvoiceRun,
  retries: Retries,
): Promise<void> => {
  for (const [index, payment] of planned.payments.entries()) {
    if (payment.retry !== 'later') continue
    const again = await send(clerk, { planned: payment, invoiceId })
    assertSamePayment(payment.key, paymentIds[index] ?? '', again.id)
    retries.sent += 1
    if (again.replayed) retries.replayed += 1
  }
}

/** Throws a StartupError for a rejection, a second payment with one key, or a retry that is not marked as a replay. */
export const runPlan = async (
  callers: Identities,
  plan: readonly PlannedInvoice[],
  onInvoiceDone: () => void,
): Promise<{ runs: readonly InvoiceRun[]; retries: Retries }> => {
  const retries: Retries = { sent: 0, replayed: 0 }
  const runs: InvoiceRun[] = []
  await forEach(plan, async (planned, index) => {
    runs[index] = await runInvoice(callers, planned, retries)
    onInvoiceDone()
  })
  await forEach(runs, run => retryPayments(callers.clerk, run, retries))
  if (retries.sent !== retries.replayed)
    throw new StartupError(`Of ${retries.sent} retries only ${retries.replayed} were answered as replays.`)
  return { runs, retries }
}
