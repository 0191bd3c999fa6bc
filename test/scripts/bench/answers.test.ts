import { expect } from 'chai'
import {
  type AnsweredPayment,
  checkAnswers,
  createAnswers,
  differencesBetween,
  type ReadModelContent,
  WrongAnswers,
} from '../../../scripts/bench/answers.ts'
import { createCaller, PARTS_PER_INVOICE, withClient } from '../../../scripts/bench/apiClient.ts'
import { partsOf, pay } from '../../../scripts/bench/paymentSides.ts'
import { checkIds } from '../../../scripts/bench/publish.ts'
import { rejectionOf } from '../../support/rejection.ts'
import { sharedService } from '../../support/service.ts'

const answered: AnsweredPayment[] = [
  { id: 'pay_1', invoice_id: 'inv_1', amount: 100, reference: null },
  { id: 'pay_2', invoice_id: 'inv_1', amount: 100, reference: 'r2' },
  { id: 'pay_3', invoice_id: 'inv_2', amount: 100, reference: 'r3' },
]
const actual: ReadModelContent = {
  payments: answered.map(payment => ({ ...payment, state: 'succeeded' })),
  invoices: [
    { id: 'inv_1', amount_due: 200, amount_paid: 200, amount_pending: 0 },
    { id: 'inv_2', amount_due: 200, amount_paid: 100, amount_pending: 0 },
    { id: 'inv_3', amount_due: 200, amount_paid: 0, amount_pending: 0 },
  ],
  successes: new Map(answered.map(({ id }) => [id, 1])),
}
const [first, second, third] = actual.payments
const [full, half, unpaid] = actual.invoices

describe('the check of a benchmark', () => {
  before(() => sharedService())

  it('finds no difference when exactly the answered payments exist', () => {
    expect(differencesBetween(answered, actual)).to.deep.equal([])
  })

  const wrong: readonly (readonly [
    name: string,
    answered: readonly AnsweredPayment[],
    found: object,
    words: RegExp,
  ])[] = [
    ['a payment is missing', answered, { payments: [first, third] }, /^pay_2 was answered 201 and does not exist\.$/],
    [
      'a payment was not answered',
      answered.slice(0, 2),
      { invoices: [full] },
      /^pay_3 exists and was not answered 201\.$/,
    ],
    [
      'two requests had one answer',
      [...answered, answered[2]].filter(each => each !== undefined),
      {
        invoices: [full, { ...half, amount_paid: 200 }, unpaid],
      },
      /^pay_3 was the answer to 2 requests/,
    ],
    [
      'a payment has another amount',
      answered,
      { payments: [first, second, { ...third, amount: 99 }] },
      /amount 100 and has 99/,
    ],
    [
      'a payment is of another invoice',
      answered,
      { payments: [first, second, { ...third, invoice_id: 'inv_3' }] },
      /inv_3/,
    ],
    [
      'a reference was lost',
      answered,
      { payments: [first, { ...second, reference: null }, third] },
      /reference r2 and has null/,
    ],
    ['a payment failed', answered, { payments: [first, second, { ...third, state: 'failed' }] }, /pay_3 .* is failed/],
    [
      'a success was published twice',
      answered,
      { successes: new Map([...actual.successes, ['pay_1', 2]]) },
      /pay_1 has 2 facts/,
    ],
    [
      'a success was not published',
      answered,
      { successes: new Map([...actual.successes].slice(1)) },
      /pay_1 has 0 facts/,
    ],
    [
      'an invoice has less paid',
      answered,
      { invoices: [{ ...full, amount_paid: 100 }, half] },
      /inv_1 has 100 paid, and 200/,
    ],
    [
      'an invoice has a remainder pending',
      answered,
      { invoices: [full, { ...half, amount_pending: 100 }] },
      /inv_2 has 100 pending/,
    ],
    [
      'an invoice is over-paid',
      answered,
      { invoices: [{ ...full, amount_due: 100 }, half] },
      /inv_1 is over-paid: 200 of 100/,
    ],
    ['an invoice is missing', answered, { invoices: [full] }, /^inv_2 was paid and does not exist\.$/],
  ]
  for (const [name, answers, changed, words] of wrong)
    it(`reports when ${name}`, () => {
      const differences = differencesBetween(answers, { ...actual, ...changed })
      expect(differences.filter(difference => words.test(difference))).to.have.length(1)
    })

  it('shows ten differences and the number of all', () => {
    const { message } = new WrongAnswers(Array.from({ length: 12 }, (_, n) => `difference ${n}`))
    expect(message).to.contain('12 differences')
    expect(message).to.contain('difference 9').and.not.to.contain('difference 10')
  })

  it('finds messages that were not sent, sent twice, or not to be sent', () => {
    expect(() => checkIds(['a', 'b'], ['b', 'a'])).not.to.throw()
    expect(() => checkIds(['a', 'b'], ['a'])).to.throw(WrongAnswers, 'b was sent 0 times')
    expect(() => checkIds(['a', 'b'], ['a', 'b', 'b'])).to.throw(WrongAnswers, 'b was sent 2 times')
    expect(() => checkIds(['a'], ['a', 'c'])).to.throw(WrongAnswers, 'c was not to be sent')
  })

  it('accepts the responses of the service, and refuses them when a payment is missing in the read model', async () => {
    const { dataDir, addresses } = await sharedService()
    const tenant = 'bench-answers'
    const caller = await createCaller({ dataDir, addresses, publishes: false }, tenant)
    const connections = 2
    for (const withReference of [false, true]) {
      const next = partsOf(await caller.invoices(connections), connections, withReference)
      // Pays all parts of all invoices, without a time limit.
      await pay(addresses, caller, { connections, next })(Number.MAX_SAFE_INTEGER)
    }
    expect(caller.answers.all()).to.have.length(2 * connections * PARTS_PER_INVOICE)
    await caller.checkAnswers()

    const { id } = caller.answers.all()[7] ?? expect.fail('No payment.')
    await withClient(addresses.postgres, async client => {
      // The transaction is rolled back at the end of its connection.
      await client.query('begin')
      await client.query('delete from payments_v1 where id = $1', [id])
      const refused = await rejectionOf(checkAnswers(client, tenant, caller.answers))
      expect(refused).to.be.instanceOf(WrongAnswers)
      expect(String(refused)).to.contain(`1 differences:\n  ${id} was answered 201 and does not exist.`)
      const unanswered = await rejectionOf(checkAnswers(client, tenant, createAnswers()))
      expect(unanswered, 'payments that were not answered').to.be.instanceOf(WrongAnswers)
    })
  })
})
