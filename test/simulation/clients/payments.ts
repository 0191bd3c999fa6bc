import type { Random } from '../random.ts'
import { type Action, keyOf, sendWithCopies } from './actor.ts'
import type { Known } from './resources.ts'
import { approveInvoice } from './orders.ts'

/** Actions on payments: creation, settlement and refunds. */

const REFERENCE_COUNT = 6
/** In every reference: the log must not have it. */
export const REFERENCE = 'an invoice numbered'

const amountFor = (random: Random, due: number): number =>
  random.chance(0.5) ? due : random.integer(1, Math.max(1, Math.ceil(due * 1.1)))

export const pay: Action = async actor => {
  const { client, resources, caller } = actor
  const { random } = client
  const isPayable = ({ body }: Known): boolean => body['state'] === 'approved' || body['state'] === 'partially_paid'
  const invoice = resources.pick('invoice', caller.tenant, random, random.chance(0.9) ? isPayable : undefined)
  if (invoice === undefined) return approveInvoice(actor)
  const { amount_due, currency } = invoice.body
  const prefer = random.pick(['', '', '', 'respond-async', 'wait=1'])
  const headers = {
    'idempotency-key': keyOf(actor, 'payment'),
    ...(prefer === '' ? {} : { prefer }),
  }
  const body = {
    invoice_id: invoice.id,
    amount: amountFor(random, Number(amount_due)),
    currency,
    ...(random.chance(0.5) ? { reference: `${REFERENCE} ${random.integer(1, REFERENCE_COUNT)}` } : {}),
    ...(random.chance(0.4) ? { settlement: 'deferred' } : {}),
  }
  const request = { operation: 'create_payment', caller, headers, body }
  await sendWithCopies(actor, request, 'payment')
  if (!random.chance(0.15)) return
  // The key of the payment is used again for a different request.
  await client.sendWithRetries({ ...request, body: { ...body, amount: body.amount + 1 } })
}

/** Settles a payment, usually a pending one; in some cases two contradicting commands are sent concurrently. */
export const settle: Action = async actor => {
  const { client, resources, caller } = actor
  const { random } = client
  const isPending = ({ body }: Known): boolean => body['state'] === 'pending'
  const payment = resources.pick('payment', caller.tenant, random, random.chance(0.7) ? isPending : undefined)
  if (payment === undefined) return pay(actor)
  const commands = ['settle_payment', 'fail_payment'].filter(() => random.chance(0.6))
  await Promise.all(
    commands.map(async operation => {
      const body = operation === 'fail_payment' ? { code: 'card_declined' } : undefined
      resources.learn(
        'payment',
        caller.tenant,
        await client.sendWithRetries({ operation, caller, id: payment.id, body }),
      )
    }),
  )
}

const POLLS_MAX = 30
const POLL_MAX_MS = 2
const EARLY_ATTEMPTS = 4

/** Settles a payment before the creating request has an answer: the payment is initiated, and its outcome is not decided. */
export const settleEarly =
  (newestPaymentId: (tenant: string) => string | undefined): Action =>
  async actor => {
    const { client, caller } = actor
    const before = newestPaymentId(caller.tenant)
    const paying = pay(actor)
    let id = before
    for (let polls = 0; polls < POLLS_MAX && id === before; polls += 1) {
      await client.sleep(client.random.next() * POLL_MAX_MS)
      id = newestPaymentId(caller.tenant)
    }
    if (id !== undefined && id !== before) {
      const operation = client.random.pick(['settle_payment', 'fail_payment', 'fail_payment'])
      const body = operation === 'fail_payment' ? { code: 'card_declined' } : undefined
      for (let tries = 0; tries < EARLY_ATTEMPTS; tries += 1) await client.attempt({ operation, caller, id, body })
    }
    await paying
  }

export const refund: Action = async actor => {
  const { client, resources, caller } = actor
  const { random } = client
  const payment = resources.pick('payment', caller.tenant, random, ({ body }) => body['state'] !== 'failed')
  if (payment === undefined) return pay(actor)
  const headers = { 'idempotency-key': keyOf(actor, `refund-${payment.id}`) }
  const amount = random.chance(0.6) ? { amount: amountFor(random, Number(payment.body['amount'])) } : {}
  const request = { operation: 'refund_payment', caller, id: payment.id, headers, body: { ...amount, reason: 'drawn' } }
  await sendWithCopies(actor, request, 'payment')
}
