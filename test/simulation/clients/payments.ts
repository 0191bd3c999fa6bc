import type { Random } from '../random.ts'
import { type Action, keyOf, withTwins } from './actor.ts'
import type { Known } from './knownResources.ts'
import { approve } from './orders.ts'

/** Payments, those who settle them, and refunds. */

const REFERENCES = 6

const amountFor = (random: Random, due: number): number =>
  random.chance(0.5) ? due : random.integer(1, Math.max(1, Math.ceil(due * 1.1)))

export const pay: Action = async actor => {
  const { client, resources, caller } = actor
  const { random } = client
  const isPayable = ({ body }: Known): boolean => body['state'] === 'approved' || body['state'] === 'partially_paid'
  const invoice = resources.some('invoice', caller.tenant, random, random.chance(0.9) ? isPayable : undefined)
  if (invoice === undefined) return approve(actor)
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
    ...(random.chance(0.5) ? { reference: `reference-${random.integer(1, REFERENCES)}` } : {}),
    ...(random.chance(0.4) ? { settlement: 'deferred' } : {}),
  }
  const request = { operation: 'create_payment', caller, headers, body }
  await withTwins(actor, request, 'payment')
  if (!random.chance(0.15)) return
  // Another request under a key that was used.
  await client.insist({ ...request, body: { ...body, amount: body.amount + 1 } })
}

/** Settlers act on what they are told, and sometimes on what they should leave alone. */
export const settle: Action = async actor => {
  const { client, resources, caller } = actor
  const { random } = client
  const isPending = ({ body }: Known): boolean => body['state'] === 'pending'
  const payment = resources.some('payment', caller.tenant, random, random.chance(0.7) ? isPending : undefined)
  if (payment === undefined) return pay(actor)
  const commands = ['settle_payment', 'fail_payment'].filter(() => random.chance(0.6))
  await Promise.all(
    commands.map(async operation => {
      const body = operation === 'fail_payment' ? { code: 'card_declined' } : undefined
      resources.learn('payment', caller.tenant, await client.insist({ operation, caller, id: payment.id, body }))
    }),
  )
}

const LOOKS = 30
const LOOK_MS = 2
const EARLY_TRIES = 4

/**
 * A settler that knows the id of a payment before its creator has an answer, and speaks while it is claimed and not yet
 * decided.
 */
export const settleEarly =
  (idOfNewest: (tenant: string) => string | undefined): Action =>
  async actor => {
    const { client, caller } = actor
    const before = idOfNewest(caller.tenant)
    const paying = pay(actor)
    let id = before
    for (let looks = 0; looks < LOOKS && id === before; looks += 1) {
      await client.sleep(client.random.next() * LOOK_MS)
      id = idOfNewest(caller.tenant)
    }
    if (id !== undefined && id !== before) {
      const operation = client.random.pick(['settle_payment', 'fail_payment', 'fail_payment'])
      const body = operation === 'fail_payment' ? { code: 'card_declined' } : undefined
      for (let tries = 0; tries < EARLY_TRIES; tries += 1) await client.attempt({ operation, caller, id, body })
    }
    await paying
  }

export const refund: Action = async actor => {
  const { client, resources, caller } = actor
  const { random } = client
  const payment = resources.some('payment', caller.tenant, random, ({ body }) => body['state'] !== 'failed')
  if (payment === undefined) return pay(actor)
  const headers = { 'idempotency-key': keyOf(actor, `refund-${payment.id}`) }
  const amount = random.chance(0.6) ? { amount: amountFor(random, Number(payment.body['amount'])) } : {}
  const request = { operation: 'refund_payment', caller, id: payment.id, headers, body: { ...amount, reason: 'drawn' } }
  await withTwins(actor, request, 'payment')
}
