import { expect } from 'chai'
import fc from 'fast-check'
import type { InvoiceRow } from '../../../projections/invoices/projection.ts'
import { invoiceResource, invoiceView } from '../../../projections/invoices/queries.ts'
import { routes } from '../../../src/http/index.ts'
import type { AnyRoute } from '../../../src/http/route.ts'
import { NEWEST_VERSION, OLDEST_VERSION, VERSIONS } from '../../../src/http/versions/index.ts'
import { resolveVersionWithout } from '../../../src/http/versions/requestedVersion.ts'
import { inVersion, routeIn } from '../../../src/http/translation/translation.ts'

type Body = Readonly<Record<string, unknown>>

const routeOf = (operationId: string): AnyRoute => {
  const match = routes.find(route => route.operationId === operationId)
  if (match === undefined) throw new Error(`No operation is called ${operationId}.`)
  return match
}

/** The body of a response, translated down by the route of the version. */
const down = async (operationId: string, status: number, body: object | undefined): Promise<unknown> => {
  const handled = { ...routeOf(operationId), handler: async () => ({ status, ...(body ? { body } : {}) }) }
  return (await routeIn(handled, OLDEST_VERSION).handler({} as never)).body
}

/** The body of a request, checked by the version and translated up for the handler; undefined if it is refused. */
const up = (operationId: string, body: unknown): unknown =>
  routeIn(routeOf(operationId), OLDEST_VERSION).body?.safeParse(body).data

// Written here a second time, and backwards, as an oracle of the translators.
const invoiceUp = ({ amount_due, ...others }: Body): Body => ({
  ...others,
  total_amount: amount_due,
  amount_outstanding:
    others['state'] === 'voided'
      ? 0
      : Number(amount_due) - Number(others['amount_paid']) - Number(others['amount_pending']),
})
const refundDown = ({ amount, ...others }: Body): Body => (amount === 'remaining' ? others : { ...others, amount })

const amount = fc.bigInt(1n, 999_999_999_999n)
const time = fc.date({ min: new Date(0), max: new Date('2999-01-01'), noInvalidDate: true }).map(at => at.toISOString())
const invoiceRow: fc.Arbitrary<InvoiceRow> = fc
  .record({
    id: fc.constant('inv_00000000000000000000000000'),
    tenant_id: fc.string(),
    order_id: fc.constant('ord_00000000000000000000000000'),
    state: fc.constantFrom('draft', 'approved', 'partially_paid', 'paid', 'voided'),
    currency: fc.constantFrom('USD', 'JPY'),
    amount_due: amount,
    paid: fc.nat(100),
    pending: fc.nat(100),
    amount_refunded: amount,
    due_date: fc.constant('2026-12-24'),
    approved_by: fc.option(fc.string()),
    approved_at: fc.option(time),
    paid_at: fc.option(time),
    created_at: time,
    updated_at: time,
    created_by: fc.string(),
    metadata: fc.dictionary(fc.string(), fc.string()),
    revision: fc.bigInt(0n, 1_000n),
  })
  .map(({ paid, pending, ...row }) => {
    const amount_paid = (row.amount_due * BigInt(paid)) / 100n
    return { ...row, amount_paid, amount_pending: ((row.amount_due - amount_paid) * BigInt(pending)) / 100n } as never
  })

describe('the contract of 2026-11-01, translated', () => {
  it('has invoices byte for byte as it had them, and loses nothing of the newest', async () => {
    await fc.assert(
      fc.asyncProperty(invoiceRow, async row => {
        const newest = invoiceResource(row)
        const older = await down('read_invoice', 200, newest)
        expect(JSON.stringify(older)).to.equal(JSON.stringify(invoiceView(row)))
        expect(invoiceUp(older as Body)).to.deep.equal(newest)
        const page = { next_cursor: null, has_more: false, as_of_position: '7' }
        const list = await down('list_invoices', 200, { items: [newest, newest], page })
        expect(list).to.deep.equal({ items: [older, older], page })
      }),
      { numRuns: 50 },
    )
  })

  it('leaves responses without content alone', async () => {
    expect(await down('read_invoice', 304, undefined)).to.equal(undefined)
  })

  it('takes refunds without an amount, and each newer request has one older form', () => {
    const amounts = fc.oneof(fc.constant('remaining'), fc.integer({ min: 1, max: 999_999_999_999 }))
    fc.assert(
      fc.property(fc.record({ amount: amounts, reason: fc.stringMatching(/^[a-z]{1,20}$/) }), newest => {
        const older = refundDown(newest)
        expect(up('refund_payment', older)).to.deep.equal(newest)
        expect(refundDown(up('refund_payment', older) as Body)).to.deep.equal(older)
      }),
    )
    expect(up('refund_payment', { amount: 'remaining', reason: 'x' }), 'a later word').to.equal(undefined)
  })

  it('is made of the same objects where nothing changed, so that those requests cost nothing', () => {
    const changed = inVersion(routes, OLDEST_VERSION).flatMap((older, index) =>
      older === routes[index] ? [] : [older.operationId],
    )
    expect(changed).to.have.members([
      'raise_invoice',
      'read_invoice',
      'list_invoices',
      'approve_invoice',
      'void_invoice',
      'refund_payment',
    ])
    expect(inVersion(routes, NEWEST_VERSION).every((one, index) => one === routes[index])).to.equal(true)
  })
})

describe('the version of a request', () => {
  it('is the oldest that is served without API-Version', () => {
    expect(resolveVersionWithout(new Set())(undefined)).to.deep.equal({ version: OLDEST_VERSION })
    expect(resolveVersionWithout(new Set([OLDEST_VERSION]))(undefined)).to.deep.equal({ version: VERSIONS[1] })
  })

  it('is the one that it names, unless that is unknown or retired', () => {
    const resolve = resolveVersionWithout(new Set([OLDEST_VERSION]))
    expect(resolve(NEWEST_VERSION)).to.deep.equal({ version: NEWEST_VERSION })
    expect(resolve(OLDEST_VERSION)).to.deep.equal({
      version: NEWEST_VERSION,
      refusal: 'version_retired',
      available: [NEWEST_VERSION],
    })
    for (const unknown of ['', '2026-11-02', `${NEWEST_VERSION}, ${NEWEST_VERSION}`, 'constructor'])
      expect(resolve(unknown).refusal, unknown).to.equal('unsupported_api_version')
  })

  it('may always be the newest', () => {
    expect(resolveVersionWithout(new Set(VERSIONS))(NEWEST_VERSION)).to.deep.equal({ version: NEWEST_VERSION })
  })
})
