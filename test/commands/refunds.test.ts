import { expect } from 'chai'
import { createLedger } from '../../src/commands/commandHandler.ts'
import { idOfKey, newIdempotencyRecord } from '../../src/commands/idempotency/record.ts'
import { pay } from '../../src/commands/payments.ts'
import { type NewRefund, refund } from '../../src/commands/refunds.ts'
import { createMemoryLog } from '../support/memoryStore.ts'
import { createVirtualWorld } from '../support/virtualWorld.ts'
import { approveInvoice, context, newPayment } from './fixtures.ts'

describe('a refund that loses a race', () => {
  const payment = newPayment('p')

  const refundOf = (key: string, amount: bigint): NewRefund => {
    const scope = { tenant: 'acme', subject: 'clerk', client: 'shop', operation: 'refund_payment' }
    const scoped = { scope, key, secret: Buffer.alloc(32, 1) }
    const request = { payment_id: payment.id, amount: Number(amount) }
    const idempotencyRecord = newIdempotencyRecord(scoped, request, '2026-02-01T00:00:00.000Z')
    return { id: idOfKey('rfd', scoped), payment_id: payment.id, amount, reason: 'broken', idempotencyRecord }
  }

  it('is refused, and a repetition of its key is marked as a replay of that refusal', async () => {
    const ledger = createLedger(createMemoryLog().open(), createVirtualWorld())
    await approveInvoice(ledger)
    await pay(ledger, payment, context())
    const requested = ['a', 'b'].map(key => refundOf(key, payment.amount))
    const outcomes = await Promise.all(
      requested.map(one => refund(ledger, one, context({ correlationId: `first with ${one.id}` }))),
    )
    expect(outcomes.map(({ kind }) => kind)).to.have.members(['created', 'refused'])
    const loser = requested[outcomes.findIndex(({ kind }) => kind === 'refused')] ?? requested[0]
    if (loser === undefined) throw new Error('There is no refund.')
    const first = outcomes.find(({ kind }) => kind === 'refused')
    expect(first)
      .to.include({ firstCorrelationId: `first with ${loser.id}` })
      .and.not.have.property('replayed')
    const again = await refund(ledger, loser, context({ correlationId: 'another' }))
    expect(again).to.deep.equal({ ...first, replayed: true })
  })
})
