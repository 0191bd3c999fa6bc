import { expect } from 'chai'
import { PAYMENT_GRACE_MS, REQUEST_GRACE_MS } from '../../src/processes/recoveryTimes.ts'
import { invoiceEntity, paymentEntity } from '../../src/commands/entities.ts'
import { handle } from '../../src/commands/commandHandler.ts'
import { initiationOf, type NewPayment, pay } from '../../src/commands/payments.ts'
import { feedOf } from '../../src/processes/processManager.ts'
import { paymentRecovery } from '../../src/processes/paymentRecovery.ts'
import { approveInvoice, context, newPayment, typesIn } from '../commands/fixtures.ts'
import { id } from '../streams/samples.ts'
import { rejectionOf } from '../support/rejection.ts'
import { type DrivenRun, useProcessHarness, noFailure } from './harness.ts'

const GRACE_MS = PAYMENT_GRACE_MS

describe('payment recovery', () => {
  const harness = useProcessHarness()
  let process: DrivenRun

  const typesOf = ({ id: paymentId }: NewPayment) => typesIn(harness.log.events, `payment-${paymentId}`)
  const checkpoint = () => harness.checkpoint('settlement')
  /** The state after a request that ended right after its idempotency record. */
  const initiateOnly = async (payment: NewPayment): Promise<void> => {
    const stored = await payment.reference?.store(async () => undefined)
    const token = stored !== undefined && 'token' in stored ? stored.token : null
    const command = { ...initiationOf(payment, token), order_id: id('ord') }
    await handle(harness.ledger, paymentEntity, payment.id, { command, context: context(), load: 'assume_empty' })
  }
  const start = async (epoch?: bigint): Promise<void> => {
    const { database, openLedger } = harness
    const ledger = openLedger()
    process = await harness.start(feedOf(paymentRecovery(ledger), { database, ledger, onFailure: noFailure }), epoch)
  }

  beforeEach(async () => {
    await approveInvoice(harness.ledger)
    await start()
  })

  it('completes a payment whose request ended early, and leaves a recent one to its request', async () => {
    const payment = newPayment('k', { reference: 'R' })
    await initiateOnly(payment)
    await process.processNew()
    await harness.world.pass(GRACE_MS - 1)
    expect(typesOf(payment)).to.deep.equal(['PaymentInitiated'])
    await harness.world.pass(1)
    expect(typesOf(payment)).to.deep.equal(['PaymentInitiated', 'PaymentSucceeded'])
  })

  it('records the caller in whose name it acts, and its own authority', async () => {
    const payment = newPayment('k')
    await initiateOnly(payment)
    await process.processNew()
    await harness.world.pass(GRACE_MS)
    const [initiated, outcome] = harness.log.events.filter(({ stream }) => stream === `payment-${payment.id}`)
    expect(outcome?.metadata).to.deep.include({
      subject: 'clerk',
      tenant: 'acme',
      authority: 'settlement',
      $correlationId: initiated?.metadata['$correlationId'],
      $causationId: initiated?.id,
    })
  })

  it('ignores a payment that its request has completed', async () => {
    await pay(harness.ledger, newPayment('k', { settlement: 'deferred' }), context())
    await process.processNew()
    const before = harness.log.events.length
    await harness.world.pass(2 * GRACE_MS)
    expect(harness.log.events).to.have.length(before)
    expect(await checkpoint()).to.equal(harness.log.head())
  })

  it('completes a refused payment with its refusal', async () => {
    const payment = newPayment('k', { amount: 2000n })
    await initiateOnly(payment)
    await pay(harness.ledger, newPayment('other', { amount: 1000n }), context())
    await process.processNew()
    await harness.world.pass(GRACE_MS)
    expect(typesOf(payment)).to.deep.equal(['PaymentInitiated', 'PaymentFailed'])
    const { row } = await harness.ledger.aggregates.load(invoiceEntity, id('inv'))
    expect(row).to.include({ amount_paid: 1000n, amount_pending: 0n })
  })

  it('applies a deferred payment to the invoice when the request ended early', async () => {
    const payment = newPayment('k', { settlement: 'deferred' })
    await pay(harness.ledger, payment, context())
    await handle(harness.ledger, paymentEntity, payment.id, { command: { type: 'SettlePayment' }, context: context() })
    await process.processNew()
    await harness.world.pass(REQUEST_GRACE_MS)
    const { row } = await harness.ledger.aggregates.load(invoiceEntity, id('inv'))
    expect(row).to.include({ amount_paid: 1000n, amount_pending: 0n })
  })

  it('releases the reservation of a failed payment when the request ended early', async () => {
    const payment = newPayment('k', { settlement: 'deferred' })
    await pay(harness.ledger, payment, context())
    const command = { type: 'FailPayment' as const, code: 'card_declined' }
    await handle(harness.ledger, paymentEntity, payment.id, { command, context: context() })
    await process.processNew()
    await harness.world.pass(REQUEST_GRACE_MS)
    const { row } = await harness.ledger.aggregates.load(invoiceEntity, id('inv'))
    expect(row).to.include({ amount_paid: 0n, amount_pending: 0n })
  })

  describe('keeps its checkpoint', () => {
    it('at the last event before the oldest open payment while other events come', async () => {
      const before = harness.log.events.findLast(({ stream }) => /^(invoice|payment|refund)-/.test(stream))?.position
      await initiateOnly(newPayment('a'))
      await pay(harness.ledger, newPayment('b'), context())
      await process.processNew()
      expect(await checkpoint()).to.equal(before)
      await initiateOnly(newPayment('c', { amount: 10n }))
      await process.processNew()
      expect(await checkpoint()).to.equal(before)
    })

    it('before an open payment, which the next process completes', async () => {
      const payment = newPayment('k')
      await initiateOnly(payment)
      await process.processNew()
      await process.stop()
      await start(2n)
      await process.processNew()
      await harness.world.pass(GRACE_MS)
      expect(typesOf(payment)).to.deep.equal(['PaymentInitiated', 'PaymentSucceeded'])
      await process.processNew()
      expect(await checkpoint()).to.equal(harness.log.head())
    })
  })

  it('with an old epoch does not move the checkpoint', async () => {
    await initiateOnly(newPayment('k'))
    const old = process
    await start(2n)
    expect(await rejectionOf(old.processNew())).to.have.property('name', 'EpochSuperseded')
    expect(await checkpoint()).to.equal(0n)
    await old.stop()
  })

  it('completes each of many payments once, also when two processes run', async () => {
    const payments = Array.from({ length: 40 }, (_, n) => newPayment(`k${n}`, { amount: 50n, reference: `R${n}` }))
    for (const payment of payments) await initiateOnly(payment)
    await process.processNew()
    const first = process
    await start(2n)
    await process.processNew()
    for (let rounds = 0; rounds < 20; rounds += 1) await harness.world.pass(GRACE_MS)
    for (const payment of payments) expect(typesOf(payment)).to.deep.equal(['PaymentInitiated', 'PaymentSucceeded'])
    const { row } = await harness.ledger.aggregates.load(invoiceEntity, id('inv'))
    expect(row).to.include({ amount_paid: 2000n, amount_pending: 0n })
    await first.stop()
  })
})
