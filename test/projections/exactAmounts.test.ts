import { expect } from 'chai'
import { accountView, postingView, trialBalanceRow } from '../../projections/bookViews.ts'
import { exactJson } from '../../projections/exactAmounts.ts'
import { csv } from '../../src/adapters/files/csv.ts'
import { jsonl } from '../../src/adapters/files/jsonl.ts'
import { postingColumns } from '../../src/processes/exports/exportColumns.ts'

/** The first sum that no number of JavaScript holds, and the last one of the tables. */
const LARGE = [2n ** 53n + 1n, 2n ** 63n - 1n]

const accountOf = (debits: bigint) => ({
  code: 'cash.USD',
  kind: 'cash',
  currency: 'USD',
  customer_reference: null,
  balance_position: 7n,
  debits,
  credits: 0n,
  pending: 0n,
})

describe('sums beyond the numbers of JavaScript', () => {
  for (const sum of LARGE)
    it(`have each digit in the balances of an account, the trial balance and statements: ${sum}`, () => {
      expect(exactJson(accountView(accountOf(sum)))).to.include(`"posted":${sum},"pending":0,"available":${sum}`)
      expect(exactJson(trialBalanceRow(accountOf(sum)))).to.include(`"debits":${sum},"credits":0`)
      const posting = postingView({
        position: 7n,
        event_id: '00000000-0000-8000-a000-000000000007',
        at: '2026-01-01T00:00:00.000Z',
        kind: 'payment_settled',
        order_id: 'ord_1',
        invoice_id: 'inv_1',
        payment_id: null,
        reverses: null,
        currency: 'USD',
        customer_reference: null,
        line: 0,
        account: 'cash.USD',
        direction: 'debit',
        amount: 1n,
        debits: sum,
        credits: 0n,
      })
      for (const format of [csv, jsonl]) {
        const text = Buffer.from(format(postingColumns).write([posting])).toString()
        expect(text).to.include(String(sum))
      }
    })

  it('are numbers as before where those are exact', () => {
    const { balances } = accountView(accountOf(2n ** 53n - 1n))
    expect(balances.posted).to.equal(Number.MAX_SAFE_INTEGER)
  })
})
