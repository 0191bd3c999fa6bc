import { expect } from 'chai'
import { decimalOf, minorUnitsOf } from '../../../scripts/demo/money.ts'
import { planOf, sumsOf } from '../../../scripts/demo/plan.ts'
import { sources } from '../../../scripts/demo/sources.ts'

describe('amounts of the demo', () => {
  for (const [decimal, currency, units] of [
    ['1.98', 'USD', 198n],
    ['0.07', 'USD', 7n],
    ['3', 'USD', 300n],
    ['3.5', 'USD', 350n],
    ['90071992547.09', 'USD', 9007199254709n],
    ['12', 'JPY', 12n],
    ['1.234', 'KWD', 1234n],
  ] as const)
    it(`parses ${decimal} ${currency} as ${units} minor units`, () => {
      expect(minorUnitsOf(decimal, currency)).to.equal(units)
    })

  for (const [decimal, currency] of [
    ['1.999', 'USD'],
    ['-1.00', 'USD'],
    ['1e3', 'USD'],
    ['.5', 'USD'],
    ['1.', 'USD'],
    ['1,50', 'USD'],
    [' 1', 'USD'],
    ['', 'USD'],
    ['1.0', 'JPY'],
  ] as const)
    it(`refuses ${JSON.stringify(decimal)} in ${currency}`, () => {
      expect(() => minorUnitsOf(decimal, currency)).to.throw(RangeError)
    })

  it('are written with all digits of the minor unit', () => {
    const written = [decimalOf(198n, 'USD'), decimalOf(7n, 'USD'), decimalOf(-50n, 'USD'), decimalOf(12n, 'JPY')]
    expect(written).to.deep.equal(['1.98', '0.07', '-0.50', '12'])
  })
})

describe('the plan of the demo', () => {
  const plan = planOf(sources)

  it('invoices 2328.60 USD for 412 orders, and paid plus open amounts equal that sum', () => {
    const sums = sumsOf(plan)
    expect(sums).to.include({ orders: 412, invoices: 412, invoiced: 232860n })
    expect(sums.paid + sums.open).to.equal(232860n)
    expect(sums.refunds > 0 && sums.refunded < sums.paid).to.equal(true)
    expect(sums.open > 0n && sums.open < sums.paid).to.equal(true)
  })

  it('has invoices that are paid at once, in two parts, in part and not at all, and none overpaid', () => {
    const kinds = plan.map(({ total, payments }) => {
      const paid = payments.reduce((sum, { amount }) => sum + amount, 0n)
      expect(paid <= total && payments.every(({ amount }) => amount > 0n)).to.equal(true)
      return `${payments.length} ${paid === total ? 'full' : 'open'}`
    })
    expect([...new Set(kinds)].toSorted()).to.deep.equal(['0 open', '1 full', '1 open', '2 full'])
    expect(kinds.filter(kind => kind === '1 full').length).to.be.above(412 / 2)
  })

  it('repeats every tenth payment at once and another tenth later', () => {
    const retries = plan.flatMap(({ payments }) => payments.map(({ retry }) => retry))
    expect(retries.slice(0, 11)).to.deep.equal([
      'at_once',
      ...Array.from({ length: 4 }, () => 'none'),
      'later',
      ...Array.from({ length: 4 }, () => 'none'),
      'at_once',
    ])
    expect(retries.filter(retry => retry === 'later').length).to.be.within(45, 46)
  })

  it('has one key and one reference per payment, and is deterministic', () => {
    const payments = plan.flatMap(planned => planned.payments)
    expect(new Set(payments.map(({ key }) => key)).size).to.equal(payments.length)
    expect(new Set(payments.map(({ reference }) => reference)).size).to.equal(payments.length)
    expect(plan[0]?.payments[0]).to.include({ key: 'chinook-1-payment', reference: 'chinook-1' })
    expect(planOf(sources)).to.deep.equal(plan)
  })

  it('is the same for the first invoices when only these are run', () => {
    expect(planOf(sources.slice(0, 40))).to.deep.equal(plan.slice(0, 40))
  })

  it('refuses an invoice whose lines do not add up to its total', () => {
    expect(() => planOf(sources.slice(0, 1).map(first => ({ ...first, total: '1.99' })))).to.throw(
      RangeError,
      'invoice 1 ',
    )
  })
})
