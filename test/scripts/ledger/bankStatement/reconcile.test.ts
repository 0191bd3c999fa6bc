import { expect } from 'chai'
import type { LedgerPayments, Payment } from '../../../../scripts/ledger/bankStatement/ledgerPayments.ts'
import { type Reconciliation, reconcile } from '../../../../scripts/ledger/bankStatement/reconcile.ts'
import { rowOf } from '../../../../scripts/ledger/bankStatement/report.ts'
import { openStatement } from '../../../../scripts/ledger/bankStatement/statementFile.ts'
import { rejectionOf } from '../../../support/rejection.ts'
import { tidyUp } from '../fixtures.ts'
import { camt, type Entry, listed, ntry, written } from './statements.ts'

/** Payments in memory, with the answers that the ledger gives. */
const ledgerOf = (given: readonly Partial<Payment>[]) => {
  const settled = new Map<string, string>()
  const sent: string[] = []
  const payments = given.map(
    (one, index): Payment => ({
      id: `pay_${String(index + 1).padStart(26, '0')}`,
      state: 'pending',
      amount: 1000n,
      currency: 'USD',
      reference: `R-${index + 1}`,
      settlement: 'deferred',
      ...one,
    }),
  )
  const asIs = (one: Payment): Payment => (settled.has(one.id) ? { ...one, state: 'succeeded' } : one)
  const ledger: LedgerPayments = {
    named: async name => payments.filter(({ id, reference }) => [id, reference].includes(name)).map(asIs),
    pending: async function* () {
      yield* payments.map(asIs).filter(({ state }) => state === 'pending')
    },
    settledBy: async id => settled.get(id),
    settle: async (id, correlationId) => {
      sent.push(id)
      if (payments.find(one => one.id === id)?.state === 'failed') return { kind: 'failed' }
      const by = settled.get(id) ?? correlationId
      settled.set(id, by)
      return { kind: 'settled', by }
    },
  }
  return { ledger, settled, sent, payments }
}

type Given = Partial<Pick<Reconciliation, 'dryRun' | 'signal'>>

const importing = async (ledger: LedgerPayments, content: string, given: Given = {}) => {
  const file = await openStatement(await written(content))
  const rest = { dryRun: false, signal: new AbortController().signal, onProgress: () => undefined, ...given }
  try {
    const steps = await listed(reconcile({ file, payments: ledger, ...rest }))
    return {
      rows: steps.map(({ outcome }) => rowOf(outcome)),
      settledNow: steps.filter(step => step.settledNow).length,
    }
  } finally {
    await file.close()
  }
}

const credit = (amount: string, endToEndId: string, more: Partial<Entry> = {}): string =>
  ntry({ amount, parts: [{ endToEndId }], ...more })
const takenBack = (amount: string, endToEndId: string): string =>
  credit(amount, endToEndId, { direction: 'DBIT', head: '<RvslInd>true</RvslInd>' })

describe('the reconciliation of a bank statement', () => {
  after(tidyUp)

  /** The statuses at the first import; the second one must change nothing and say the same. */
  const statusesOf = async (given: readonly Partial<Payment>[], entries: readonly string[]) => {
    const { ledger, settled } = ledgerOf(given)
    const content = camt(entries)
    const dry = await importing(ledger, content, { dryRun: true })
    expect(settled.size).to.equal(0)
    const first = await importing(ledger, content)
    const after = [...settled]
    const second = await importing(ledger, content)
    expect(dry.rows).to.deep.equal(first.rows)
    expect(second.rows).to.deep.equal(first.rows)
    expect([...settled]).to.deep.equal(after)
    expect(first.settledNow).to.equal(after.length)
    return { statuses: first.rows.map(({ status }) => status), settled: [...settled.keys()], rows: first.rows }
  }

  it('settles the payment with the reference, the amount and the currency of a line', async () => {
    const { statuses, settled } = await statusesOf([{}, {}], [credit('10.00', 'R-2')])
    expect(statuses).to.deep.equal(['matched', 'expected'])
    expect(settled).to.deep.equal([`pay_${'2'.padStart(26, '0')}`])
  })

  for (const [status, amount, currency] of [
    ['over', '10.01', 'USD'],
    ['under', '9.99', 'USD'],
    ['currency_mismatch', '10.00', 'EUR'],
  ] as const)
    it(`gives a line the status ${status}, and settles nothing`, async () => {
      const { statuses, settled } = await statusesOf([{}], [credit(amount, 'R-1', { currency })])
      expect([statuses, settled]).to.deep.equal([[status], []])
    })

  it('compares amounts before anything else, so that the order of lines does not matter', async () => {
    const { statuses } = await statusesOf([{}], [credit('9.00', 'R-1'), credit('10.00', 'R-1'), credit('9.00', 'R-1')])
    expect(statuses).to.deep.equal(['under', 'matched', 'under'])
  })

  it('gives the second line of a payment the status duplicate, also if the lines are equal', async () => {
    const equal = credit('10.00', 'R-1', { bankId: 'B-1' })
    const { statuses, rows } = await statusesOf([{}], [equal, equal, credit('10.00', 'R-1', { bankId: 'B-2' })])
    expect(statuses).to.deep.equal(['matched', 'duplicate', 'duplicate'])
    expect(rows[1]?.detail).to.match(/is paid already, by line \d+\.$/)
  })

  it('gives a line the status duplicate if its payment was settled without a statement', async () => {
    const { ledger, settled, payments } = ledgerOf([{}])
    settled.set(payments[0]?.id ?? '', 'by-hand-00')
    expect((await importing(ledger, camt([credit('10.00', 'R-1')]))).rows[0]?.status).to.equal('duplicate')
  })

  it('gives a line the status duplicate if another caller settles first, and missing if the payment fails meanwhile', async () => {
    const faster = ledgerOf([{}])
    const slow: LedgerPayments = { ...faster.ledger, settle: async () => ({ kind: 'settled', by: 'another-one' }) }
    expect((await importing(slow, camt([credit('10.00', 'R-1')]))).rows[0]?.status).to.equal('duplicate')
    const failing: LedgerPayments = { ...faster.ledger, settle: async () => ({ kind: 'failed' }) }
    expect((await importing(failing, camt([credit('10.00', 'R-1')]))).rows[0]?.status).to.equal('missing')
  })

  it('gives the status not_settled where a payment cannot be settled yet; the next import settles it', async () => {
    const given = Array.from({ length: 40 }, () => ({}))
    const content = camt([...given.map((_, index) => credit('10.00', `R-${index + 1}`)), credit('10.00', 'R-3')])
    const { ledger, settled, payments } = ledgerOf(given)
    const notYet: LedgerPayments['settle'] = async (id, correlationId) =>
      id === payments[2]?.id ? { kind: 'not_accepted' } : ledger.settle(id, correlationId)
    const first = await importing({ ...ledger, settle: notYet }, content)
    expect([first.settledNow, settled.size]).to.deep.equal([39, 39])
    expect(first.rows.filter(({ status }) => status !== 'matched').map(({ status }) => status)).to.deep.equal([
      'not_settled',
      'duplicate',
    ])
    expect(first.rows[2]?.detail).to.match(/^pay_0*3 is not accepted by its invoice yet/)
    const later = await importing(ledger, content)
    expect([later.settledNow, later.rows[2]?.status, settled.size]).to.deep.equal([1, 'matched', 40])
  })

  it('recognizes its own settlements by the history of a payment when the list is behind', async () => {
    const { ledger, payments } = ledgerOf([{}])
    const behind = { ...ledger, named: async (name: string) => payments.filter(({ reference }) => reference === name) }
    const content = camt([credit('10.00', 'R-1', { bankId: 'B-1' }), credit('10.00', 'R-1', { bankId: 'B-2' })])
    const first = await importing(behind, content)
    const second = await importing(behind, content)
    expect([first.settledNow, second.settledNow]).to.deep.equal([1, 0])
    expect(second.rows).to.deep.equal(first.rows)
    expect((await importing(behind, camt([credit('10.00', 'R-1')]))).rows[0]?.status).to.equal('duplicate')
  })

  it('gives the status missing to a line without a deferred payment that can be settled', async () => {
    const given = [{ settlement: 'immediate', state: 'succeeded' }, { state: 'failed' }] as const
    const entries = ['none', 'R-1', 'R-2'].map(reference => credit('10.00', reference))
    const { statuses, rows } = await statusesOf(given, entries)
    expect(statuses).to.deep.equal(['missing', 'missing', 'missing'])
    expect(rows.map(({ detail }) => String(detail).replace(/pay_0*/, ''))).to.deep.equal([
      'No payment has a reference of this line.',
      '1 is not deferred.',
      '2 has failed.',
    ])
  })

  it('gives every reversal the status missing, and settles no credit that it takes back', async () => {
    const entries = [credit('10.00', 'R-1'), takenBack('10.00', 'R-1'), takenBack('5.00', 'none')]
    const { statuses, settled } = await statusesOf([{}], entries)
    expect([statuses, settled]).to.deep.equal([['under', 'missing', 'missing'], []])
  })

  it('settles a payment that was paid twice and taken back once', async () => {
    const entries = [
      credit('10.00', 'R-1', { bankId: 'B-1' }),
      takenBack('10.00', 'R-1'),
      credit('10.00', 'R-1', { bankId: 'B-2' }),
    ]
    const { statuses, settled } = await statusesOf([{}], entries)
    expect(statuses).to.deep.equal(['under', 'missing', 'matched'])
    expect(settled).to.have.length(1)
  })

  it('settles a credit beside a reversal of another amount or currency', async () => {
    const inEuro = credit('10.00', 'R-1', { direction: 'DBIT', currency: 'EUR', head: '<RvslInd>true</RvslInd>' })
    const entries = [credit('10.00', 'R-1'), takenBack('0.50', 'R-1'), inEuro]
    const { statuses, settled } = await statusesOf([{}], entries)
    expect(statuses).to.deep.equal(['matched', 'missing', 'missing'])
    expect(settled).to.have.length(1)
  })

  it('takes one credit back by a reversal with both the id and the reference of its payment', async () => {
    const id = `pay_${'1'.padStart(26, '0')}`
    const both = ntry({
      ...{ amount: '10.00', direction: 'DBIT', head: '<RvslInd>true</RvslInd>' },
      parts: [{ endToEndId: 'R-1', text: `payment ${id}` }],
    })
    const entries = [credit('10.00', 'R-1', { bankId: 'B-1' }), both, credit('10.00', 'R-1', { bankId: 'B-2' })]
    const { statuses, settled } = await statusesOf([{}], entries)
    expect(statuses).to.deep.equal(['under', 'missing', 'matched'])
    expect(settled).to.have.length(1)
  })

  it('ignores debits that name no payment, and entries that are not booked', async () => {
    const entries = [
      credit('10.00', 'none', { direction: 'DBIT' }),
      credit('10.00', 'R-1', { status: 'PDNG' }),
      credit('10.00', 'R-1', { direction: 'DBIT' }),
    ]
    const { statuses, settled } = await statusesOf([{}], entries)
    expect([statuses, settled]).to.deep.equal([['ignored', 'ignored', 'missing', 'expected'], []])
  })

  it('finds references in free texts, of two payments in one entry too', async () => {
    const parts = [
      { text: 'rent R-1', amount: '10.00' },
      { text: 'rent R-2', amount: '10.00' },
    ]
    const { statuses, settled } = await statusesOf([{}, {}], [ntry({ amount: '20.00', bankId: 'B', parts })])
    expect(statuses).to.deep.equal(['missing', 'missing', 'expected', 'expected'])
    expect(settled).to.deep.equal([])
    const named = [{ reference: 'INV-1' }, { reference: 'INV-2' }]
    const long = parts.map(({ amount }, index) => ({ amount, text: `rent INV-${index + 1}` }))
    const actual = await statusesOf(named, [ntry({ amount: '20.00', bankId: 'B', parts: long })])
    expect([actual.statuses, actual.settled.length]).to.deep.equal([['matched', 'matched'], 2])
  })

  it('settles, of several payments in one text, one that has the amount and is not settled', async () => {
    const given = [{ reference: 'INV-1', amount: 1n }, { reference: 'INV-2' }, { reference: 'INV-3' }]
    const entry = (bankId: string) => ntry({ amount: '10.00', bankId, parts: [{ text: 'INV-1 INV-2 INV-3' }] })
    const { statuses, rows } = await statusesOf(given, [entry('B-1'), entry('B-2'), entry('B-3')])
    expect(statuses).to.deep.equal(['matched', 'matched', 'duplicate', 'expected'])
    expect(rows.slice(0, 2).map(({ payment_id }) => payment_id?.toString().at(-1))).to.deep.equal(['2', '3'])
  })

  it('finds its own settlement by a text when a payment with the reference of the line has appeared since', async () => {
    const line = (bankId: string) =>
      ntry({ amount: '10.00', bankId, parts: [{ endToEndId: 'INV-7', text: 'for INV-8' }] })
    const { ledger, settled } = ledgerOf([{ reference: 'INV-8' }, { reference: 'INV-7' }])
    const before = { ...ledger, named: async (name: string) => (name === 'INV-7' ? [] : ledger.named(name)) }
    const first = await importing(before, camt([line('B-1')]))
    const second = await importing(ledger, camt([line('B-1')]))
    expect([first.settledNow, second.settledNow, settled.size]).to.deep.equal([1, 0, 1])
    expect(second.rows[0]).to.deep.equal(first.rows[0])
    const other = await importing(ledger, camt([line('B-1'), line('B-2')]))
    expect(other.rows.map(({ status }) => status)).to.deep.equal(['matched', 'matched'])
    expect([other.settledNow, settled.size]).to.deep.equal([1, 2])
  })

  it('finds a payment by its id too', async () => {
    const id = `pay_${'1'.padStart(26, '0')}`
    expect((await statusesOf([{ reference: null }], [credit('10.00', id)])).statuses).to.deep.equal(['matched'])
  })

  it('continues an import that was ended at any line', async () => {
    const given = Array.from({ length: 100 }, () => ({}))
    const content = camt(given.map((_, index) => credit('10.00', `R-${index + 1}`)))
    const whole = await importing(ledgerOf(given).ledger, content)
    for (const endAfter of [1, 33, 99]) {
      const { ledger, settled, sent } = ledgerOf(given)
      const stop = new AbortController()
      const settle: LedgerPayments['settle'] = async (id, correlationId) => {
        if (settled.size === endAfter) stop.abort()
        stop.signal.throwIfAborted()
        return ledger.settle(id, correlationId)
      }
      await rejectionOf(importing({ ...ledger, settle }, content, { signal: stop.signal }))
      expect(settled.size).to.equal(endAfter)
      const { rows, settledNow } = await importing(ledger, content)
      expect(rows).to.deep.equal(whole.rows)
      expect([settledNow, sent.length]).to.deep.equal([100 - endAfter, 100])
    }
  })

  it('changes nothing if the last line of the file is wrong', async () => {
    const { ledger, sent } = ledgerOf([{}])
    const entries = [credit('10.00', 'R-1'), credit('1000.50', 'R-1', { currency: 'JPY' })]
    expect((await rejectionOf(importing(ledger, camt(entries)))).message).to.match(/^Line 25: The amount 1000\.50/)
    expect(sent).to.deep.equal([])
  })
})
