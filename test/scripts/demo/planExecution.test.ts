import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { differencesIn } from '../../../scripts/demo/reconciliation.ts'
import { createLedgerClient } from '../../../scripts/client/src/index.ts'
import { createFactReader, missingFacts } from '../../../scripts/demo/factReader.ts'
import { decimalOf } from '../../../scripts/demo/money.ts'
import { planOf, sumsOf } from '../../../scripts/demo/plan.ts'
import { forEach } from '../../../scripts/demo/planExecution.ts'
import { renewing } from '../../../scripts/demo/tokens.ts'
import { rejectionOf } from '../../support/rejection.ts'
import { sources } from '../../../scripts/demo/sources.ts'

describe('the runner of the demo', () => {
  it('processes all items, eight concurrently at most', async () => {
    const done: number[] = []
    let running = 0
    let most = 0
    await forEach(
      Array.from({ length: 50 }, (_, index) => index * 2),
      async (item, index) => {
        most = Math.max(most, ++running)
        await delay(1)
        expect(item).to.equal(index * 2)
        done.push(item)
        running -= 1
      },
    )
    expect(done.toSorted((a, b) => a - b)).to.deep.equal(Array.from({ length: 50 }, (_, index) => index * 2))
    expect(most).to.equal(8)
  })

  it('begins no further item after a failure', async () => {
    const begun: number[] = []
    const work = forEach(Array.from({ length: 50 }), async (_, index) => {
      begun.push(index)
      await delay(5)
      if (index === 3) throw new Error('the fourth')
    })
    expect((await rejectionOf(work)).message).to.equal('the fourth')
    await delay(30)
    expect(begun.length).to.be.below(17)
  })

  it('requests one token for concurrent calls, and a new one at half of its lifetime', async () => {
    let now = 0
    let tokens = 0
    const token = renewing(
      async () => `token ${++tokens}`,
      () => now,
    )
    expect(await Promise.all([token(), token()])).to.deep.equal(['token 1', 'token 1'])
    now = 149_000
    expect(await token()).to.equal('token 1')
    now = 150_000
    expect(await token()).to.equal('token 2')
  })

  it('follows the cursor through the facts and counts duplicates', async () => {
    const fact = (id: string) => ({ id, type: 'invoice.paid', subject: `inv_${id}`, data: { amount_paid: 5 } })
    const pages: Readonly<Record<string, object>> = {
      '': { items: [fact('1'), fact('2')], page: { next_cursor: 'a', has_more: true } },
      a: { items: [fact('2'), fact('3')], page: { next_cursor: 'b', has_more: false } },
      b: { items: [fact('4')], page: { next_cursor: 'b', has_more: false } },
    }
    const send: typeof fetch = async (input, init) => {
      const cursor = new URL(new Request(input, init).url).searchParams.get('cursor') ?? ''
      return Response.json(pages[cursor])
    }
    const reader = createFactReader(createLedgerClient({ baseUrl: 'http://localhost', token: 'secret', fetch: send }))
    await reader.readToEnd()
    expect(reader.facts.map(({ id }) => id)).to.deep.equal(['1', '2', '3'])
    await reader.readToEnd()
    expect(reader.facts.map(({ id }) => id)).to.deep.equal(['1', '2', '3', '4'])
    expect(reader.duplicates).to.equal(1)
  })

  it('lists the facts that have not arrived', () => {
    const ids = { orderId: 'ord_1', invoiceId: 'inv_1', paymentIds: ['pay_1'] }
    const runs = planOf(sources.slice(0, 1)).map(planned => ({ planned, ...ids }))
    const fact = (type: string, subject: string) => ({ id: type, type, subject, data: {} })
    const arrived = [fact('order.created', 'ord_1'), fact('payment.succeeded', 'pay_1'), fact('invoice.paid', 'inv_2')]
    expect(missingFacts(runs, arrived)).to.deep.equal(['invoice.approved of inv_1', 'invoice.paid of inv_1'])
  })

  it('reports each sum that differs from the plan, with its source', () => {
    const planned = sumsOf(planOf(sources))
    expect(differencesIn({ planned, lists: planned, facts: planned })).to.deep.equal([])
    const wrong = differencesIn({ planned, lists: { ...planned, paid: 1n }, facts: { ...planned, payments: 1 } })
    expect(wrong).to.deep.equal([
      `payments: planned ${planned.payments}, the facts say 1.`,
      `paid, USD: planned ${decimalOf(planned.paid, 'USD')}, the lists say 0.01.`,
    ])
  })
})
