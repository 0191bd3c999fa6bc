import { z } from 'zod'
import { type Answer, type Call, expectBody, problemIn, type Request } from './caller.ts'
import { DemoFailure } from './failure.ts'
import { CURRENCY, type PlannedInvoice, type PlannedPayment } from './plan.ts'

/** Takes the plan through the API: order, invoice, approval, payments, refunds, and the retries on purpose. */

/** Whoever raises an invoice does not approve it. */
export type Callers = { readonly clerk: Call; readonly approver: Call }

/** What came of one planned invoice. */
export type Played = {
  readonly planned: PlannedInvoice
  readonly orderId: string
  readonly invoiceId: string
  /** In the order of the planned payments. */
  readonly paymentIds: readonly string[]
}

export type Retries = { sent: number; replayed: number }

const AT_ONCE = 8
const APPROVAL_ATTEMPTS_MAX = 3
const TOO_LATE: ReadonlySet<number> = new Set([409, 412])

const created = z.object({ id: z.string() })
const invoiceSchema = z.object({ id: z.string(), state: z.string() })

/**
 * Items in their order, some at once. After a failure no further item is begun: leaving a `for … of` early ends the
 * generator, and with it the loops of the other workers, which share it.
 */
export const forEach = async <T>(
  items: readonly T[],
  work: (item: T, index: number) => Promise<void>,
): Promise<void> => {
  const queue = (function* () {
    yield* items.entries()
  })()
  const worker = async (): Promise<void> => {
    for (const [index, item] of queue) await work(item, index)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
}

type Created = { readonly id: string; readonly answer: Answer }

/** A creation with a key. One whose key is too old to be replayed names what it made: that is read instead. */
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

/** A replayed answer shows the invoice as it was made, so what it is now is read first. */
const approve = async ({ clerk, approver }: Callers, { id, answer }: Created): Promise<void> => {
  let invoice = answer.replayed ? await readInvoice(clerk, id) : { state: 'draft', etag: answer.etag }
  for (let attempt = 1; invoice.state === 'draft'; attempt++) {
    const request: Request = { method: 'POST', path: `/invoices/${id}:approve`, body: {}, ifMatch: invoice.etag }
    const approved = await approver(request)
    // Another demo at the same time, or an approval whose answer was lost, may have been first.
    const isTooLate = TOO_LATE.has(approved.status) && attempt < APPROVAL_ATTEMPTS_MAX
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

const mustBeOne = (key: string, first: string, again: string): void => {
  if (first !== again) throw new DemoFailure(`The key ${key} paid twice: ${first} and ${again}.`)
}

const pay = async (clerk: Call, payment: Payment, retries: Retries): Promise<string> => {
  if (payment.planned.retry !== 'at_once') return (await send(clerk, payment)).id
  const [first, again] = await Promise.all([send(clerk, payment), send(clerk, payment)])
  mustBeOne(payment.planned.key, first.id, again.id)
  retries.sent += 1
  if (first.answer.replayed || again.answer.replayed) retries.replayed += 1
  return first.id
}

const playOne = async (callers: Callers, planned: PlannedInvoice, retries: Retries): Promise<Played> => {
  const { clerk } = callers
  const { name, order, payments } = planned
  const { id: orderId } = await create(clerk, '/orders', `${name}-order`, order)
  const body = { order_id: orderId, metadata: { source: name } }
  const invoice = await create(clerk, '/invoices', `${name}-invoice`, body)
  await approve(callers, invoice)
  const paymentIds: string[] = []
  for (const payment of payments)
    paymentIds.push(await pay(clerk, { planned: payment, invoiceId: invoice.id }, retries))
  await giveBack(clerk, planned, paymentIds[0])
  return { planned, orderId, invoiceId: invoice.id, paymentIds }
}

/** With a key of its own, so that a second run gives nothing back twice. */
const giveBack = async (
  clerk: Call,
  { name, refund }: PlannedInvoice,
  paymentId: string | undefined,
): Promise<void> => {
  if (refund === 0n || paymentId === undefined) return
  const body = { amount: Number(refund), reason: 'The customer changed their mind.' }
  await create(clerk, `/payments/${paymentId}:refund`, `${name}-refund`, body)
}

const payAgain = async (clerk: Call, { planned, invoiceId, paymentIds }: Played, retries: Retries): Promise<void> => {
  for (const [index, payment] of planned.payments.entries()) {
    if (payment.retry !== 'later') continue
    const again = await send(clerk, { planned: payment, invoiceId })
    mustBeOne(payment.key, paymentIds[index] ?? '', again.id)
    retries.sent += 1
    if (again.answer.replayed) retries.replayed += 1
  }
}

/**
 * Plays everything, then sends the late retries. `onPlayed` is told after each invoice. Throws a DemoFailure at the first
 * answer that is not as it should be: a refusal, a second payment for one key, a retry that was not called a replay.
 */
export const play = async (
  callers: Callers,
  plan: readonly PlannedInvoice[],
  onPlayed: () => void,
): Promise<{ played: readonly Played[]; retries: Retries }> => {
  const retries: Retries = { sent: 0, replayed: 0 }
  const played: Played[] = []
  await forEach(plan, async (planned, index) => {
    played[index] = await playOne(callers, planned, retries)
    onPlayed()
  })
  await forEach(played, one => payAgain(callers.clerk, one, retries))
  if (retries.sent !== retries.replayed)
    throw new DemoFailure(`Of ${retries.sent} retries only ${retries.replayed} were answered as replays.`)
  return { played, retries }
}
