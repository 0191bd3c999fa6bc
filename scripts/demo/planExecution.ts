import pLimit from 'p-limit'
import { z } from 'zod'
import { type Answer, type Call, expectBody, problemIn, type Request } from './apiClient.ts'
import { DemoFailure } from './demoFailure.ts'
import { CURRENCY, type PlannedInvoice, type PlannedPayment } from './plan.ts'

/** Sends the plan through the API: orders, invoices, approvals, payments, refunds, and deliberate retries. */

/** An invoice is approved by another subject than the one that raised it. */
export type Identities = { readonly clerk: Call; readonly approver: Call }

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
/** After these the state is read: another one was first, or the effect is unknown. */
const READ_STATE_AFTER: ReadonlySet<number> = new Set([409, 412, 500, 504])

const created = z.object({ id: z.string() })
const invoiceSchema = z.object({ id: z.string(), state: z.string() })

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

type Created = { readonly id: string; readonly answer: Answer }

/**
 * A creation with a key. An expired key has no stored response any more but names its resource, which is read instead.
 */
const create = async (call: Call, path: string, idempotencyKey: string, body: object): Promise<Created> => {
  const request: Request = { method: 'POST', path, body, idempotencyKey }
  const answer = await call(request)
  if (problemIn(answer).code === 'idempotency_key_expired' && answer.location !== undefined) {
    const read: Request = { method: 'GET', path: answer.location }
    const found = await call(read)
    return { id: expectBody(read, found, created).id, answer: { ...found, replayed: true } }
  }
  return { id: expectBody(request, answer, created).id, answer }
}

const readInvoice = async (call: Call, id: string): Promise<{ state: string; etag: string }> => {
  const request: Request = { method: 'GET', path: `/invoices/${id}` }
  const answer = await call(request)
  return { state: expectBody(request, answer, invoiceSchema).state, etag: answer.etag }
}

/** A replayed response shows the invoice as it was created, so the present state is read first. */
const approve = async ({ clerk, approver }: Identities, { id, answer }: Created): Promise<void> => {
  let invoice = answer.replayed ? await readInvoice(clerk, id) : { state: 'draft', etag: answer.etag }
  for (let attempt = 1; invoice.state === 'draft'; attempt++) {
    const request: Request = { method: 'POST', path: `/invoices/${id}:approve`, body: {}, ifMatch: invoice.etag }
    const approved = await approver(request)
    // A concurrent demo, or an approval whose response was lost, may have been first.
    const isTooLate = READ_STATE_AFTER.has(approved.status) && attempt < APPROVAL_ATTEMPTS_MAX
    invoice = isTooLate ? await readInvoice(clerk, id) : expectBodyAndTag(request, approved)
  }
}

const expectBodyAndTag = (request: Request, answer: Answer): { state: string; etag: string } => ({
  state: expectBody(request, answer, invoiceSchema).state,
  etag: answer.etag,
})

type Payment = { readonly planned: PlannedPayment; readonly invoiceId: string }

const send = (clerk: Call, { planned: { key, amount, reference }, invoiceId }: Payment): Promise<Created> =>
  create(clerk, '/payments', key, { invoice_id: invoiceId, amount: Number(amount), currency: CURRENCY, reference })

const assertSamePayment = (key: string, first: string, again: string): void => {
  if (first !== again) throw new DemoFailure(`The key ${key} paid twice: ${first} and ${again}.`)
}

const pay = async (clerk: Call, payment: Payment, retries: Retries): Promise<string> => {
  if (payment.planned.retry !== 'at_once') return (await send(clerk, payment)).id
  const [first, again] = await Promise.all([send(clerk, payment), send(clerk, payment)])
  assertSamePayment(payment.planned.key, first.id, again.id)
  retries.sent += 1
  if (first.answer.replayed || again.answer.replayed) retries.replayed += 1
  return first.id
}

const runInvoice = async (callers: Identities, planned: PlannedInvoice, retries: Retries): Promise<InvoiceRun> => {
  const { clerk } = callers
  const { name, order, payments } = planned
  const { id: orderId } = await create(clerk, '/orders', `${name}-order`, order)
  const body = { order_id: orderId, metadata: { source: name } }
  const invoice = await create(clerk, '/invoices', `${name}-invoice`, body)
  await approve(callers, invoice)
  const paymentIds: string[] = []
  for (const payment of payments)
    paymentIds.push(await pay(clerk, { planned: payment, invoiceId: invoice.id }, retries))
  await refundPayment(clerk, planned, paymentIds[0])
  return { planned, orderId, invoiceId: invoice.id, paymentIds }
}

/** The refund has its own key, so that a second run refunds nothing again. */
const refundPayment = async (
  clerk: Call,
  { name, refund }: PlannedInvoice,
  paymentId: string | undefined,
): Promise<void> => {
  if (refund === 0n || paymentId === undefined) return
  const body = { amount: Number(refund), reason: 'The customer changed their mind.' }
  await create(clerk, `/payments/${paymentId}:refund`, `${name}-refund`, body)
}

const retryPayments = async (
  clerk: Call,
  { planned, invoiceId, paymentIds }: InvoiceRun,
  retries: Retries,
): Promise<void> => {
  for (const [index, payment] of planned.payments.entries()) {
    if (payment.retry !== 'later') continue
    const again = await send(clerk, { planned: payment, invoiceId })
    assertSamePayment(payment.key, paymentIds[index] ?? '', again.id)
    retries.sent += 1
    if (again.answer.replayed) retries.replayed += 1
  }
}

/**
 * Executes the plan, then sends the late retries, and calls `onInvoiceDone` after each invoice. Throws a DemoFailure
 * for a rejection, a second payment with one key, or a retry that is not marked as a replay.
 */
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
    throw new DemoFailure(`Of ${retries.sent} retries only ${retries.replayed} were answered as replays.`)
  return { runs, retries }
}
