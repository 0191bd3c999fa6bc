import { approvedInvoice, aPayment, type Client, newKey, pay } from '../../../support/client.ts'
import { type BadInputFixtures, type Case, refusesAll, type Refusal } from './cases.ts'

/** Valid amounts that exceed the amount due, or the amount that can be refunded. Every invoice is over 900. */

const DUE = 900
const AMOUNT_MAX = 999_999_999_999

type Resources = {
  readonly invoices: Readonly<Record<'untouched' | 'partlyPaid' | 'held' | 'paidAndHeld' | 'paid', string>>
  readonly payments: Readonly<Record<'whole' | 'partlyRefunded' | 'refunded' | 'pending' | 'failed', string>>
}
let resources: Resources

const paid = async (client: Client, invoiceId: string, given: object): Promise<string> => {
  const answer = await pay(client, aPayment(invoiceId, given))
  if (answer.status !== 201) throw new Error(answer.text)
  return answer.body.id
}

const DEFERRED = { settlement: 'deferred' }

const invoices = async (client: Client): Promise<Resources['invoices']> => {
  const next = async (...payments: object[]): Promise<string> => {
    const { invoiceId } = await approvedInvoice(client, DUE)
    for (const given of payments) await paid(client, invoiceId, given)
    return invoiceId
  }
  return {
    untouched: await next(),
    partlyPaid: await next({ amount: 100 }),
    held: await next({ amount: 200, ...DEFERRED }),
    paidAndHeld: await next({ amount: 100 }, { amount: 799, ...DEFERRED }),
    paid: await next({ amount: DUE }),
  }
}

const payments = async ({ client, service }: BadInputFixtures): Promise<Resources['payments']> => {
  const { invoiceId } = await approvedInvoice(client, DUE)
  const next = async (refund: object | undefined, given: object = {}): Promise<string> => {
    const id = await paid(client, invoiceId, given)
    if (refund) await client.post(`/payments/${id}:refund`, { reason: 'x', ...refund }, { 'idempotency-key': newKey() })
    return id
  }
  const failed = await next(undefined, DEFERRED)
  const answer = await client.post(`/payments/${failed}:fail`, {})
  if (answer.status !== 200) throw new Error(`${service.api} ${answer.text}`)
  return {
    whole: await next(undefined),
    partlyRefunded: await next({ amount: 40 }),
    refunded: await next({}),
    pending: await next(undefined, DEFERRED),
    failed,
  }
}

const EXCEEDS: Refusal = [409, 'payment_exceeds_due']
const CONFLICT: Refusal = [409, 'payment_state_conflict']

const paymentsAbove = (invoice: keyof Resources['invoices'], due: number, literals: readonly string[]): Case[] =>
  literals.map(literal => ({
    name: `the payment of ${literal} for an invoice with ${due} due: ${invoice}`,
    refusal: EXCEEDS,
    send: ({ client }) =>
      client.request('POST', '/payments', {
        raw: `{"invoice_id":"${resources.invoices[invoice]}","amount":${literal},"currency":"USD"}`,
        headers: { 'idempotency-key': newKey() },
      }),
  }))

const refundsAbove = (payment: keyof Resources['payments'], left: number, bodies: readonly object[]): Case[] =>
  bodies.map(body => ({
    name: `the refund ${JSON.stringify(body)} of a payment with ${left} left: ${payment}`,
    refusal: CONFLICT,
    send: ({ client }) =>
      client.post(
        `/payments/${resources.payments[payment]}:refund`,
        { reason: 'x', ...body },
        { 'idempotency-key': newKey() },
      ),
  }))

refusesAll(
  { set: 'amounts beyond what is due', tenant: 'bad-input-beyond-due', least: 30 },
  [
    ...paymentsAbove('untouched', DUE, ['901', '901.0', '9.01e2', '9010e-1', '1e3', '1800', '90000', `${AMOUNT_MAX}`]),
    ...paymentsAbove('untouched', DUE, ['2147483647', '2147483648', '4294967296', '4294967297', '999999.999999e6']),
    ...paymentsAbove('partlyPaid', 800, ['801', '900', '8.01e2', `${AMOUNT_MAX}`]),
    ...paymentsAbove('held', 700, ['701', '900', `${AMOUNT_MAX}`]),
    ...paymentsAbove('paidAndHeld', 1, ['2', '2.0', '800', `${AMOUNT_MAX}`]),
    ...paymentsAbove('paid', 0, ['1', '1.0', '1e0', '900', `${AMOUNT_MAX}`]),
    ...refundsAbove('whole', 100, [{ amount: 101 }, { amount: DUE }, { amount: AMOUNT_MAX }]),
    ...refundsAbove('partlyRefunded', 60, [{ amount: 61 }, { amount: 100 }]),
    ...refundsAbove('refunded', 0, [{ amount: 1 }, {}]),
    ...refundsAbove('pending', 0, [{ amount: 1 }, {}]),
    ...refundsAbove('failed', 0, [{ amount: 1 }, {}]),
  ],
  async fixtures => {
    resources = { invoices: await invoices(fixtures.client), payments: await payments(fixtures) }
  },
)
