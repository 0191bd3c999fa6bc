import { expect } from 'chai'
import { PAYMENT_GRACE_MS, REQUEST_GRACE_MS } from '../../src/commands/timeBudgets.ts'
import { invoiceEntity, paymentEntity } from '../../src/commands/entities.ts'
import { createLedger, handle, type Ledger } from '../../src/commands/commandHandler.ts'
import { type NewPayment, pay } from '../../src/commands/payments.ts'
import { positionOf } from '../../src/feeds/checkpoints.ts'
import type { Database } from '../../src/ports.ts'
import { feedOf } from '../../src/processes/processManager.ts'
import { paymentRecovery } from '../../src/processes/paymentRecovery.ts'
import { approveInvoice, context, newPayment, typesIn } from '../commands/fixtures.ts'
import { startTestPostgres, type TestPostgres } from '../feeds/fixtures.ts'
import { id } from '../streams/samples.ts'
import { createMemoryLog, type MemoryLog } from '../support/memoryStore.ts'
import { createHeldWorld, type DrivenRun, drive, type HeldWorld, noFailure } from './harness.ts'

const GRACE_MS = PAYMENT_GRACE_MS

describe('payment recovery', function () {
  this.timeout(60_000)
  let postgres: TestPostgres
  let database: Database
  let log: MemoryLog
  let world: HeldWorld
  let ledger: Ledger
  let process: DrivenRun

  const typesOf = ({ id: paymentId }: NewPayment) => typesIn(log.events, `payment-${paymentId}`)
  const checkpoint = () => positionOf(database.sql, 'settlement')
  const head = (): bigint => log.head()
  /** The state after a request that ended right after its idempotency record. */
  const claimOnly = async (payment: NewPayment): Promise<bigint> => {
    const { id: paymentId, claim, metadata, waitMs: _, ...terms } = payment
    const command = { type: 'InitiatePayment' as const, ...terms, order_id: id('ord'), metadata, claim }
    await handle(ledger, paymentEntity, paymentId, { command, context: context(), isNew: true })
    return head()
  }
  const start = async (epoch = 1n): Promise<void> => {
    const own = createLedger(log.open(), world)
    process = await drive(feedOf(paymentRecovery(own), { database, ledger: own, onFailure: noFailure }), log, epoch)
  }

  before(async () => {
    postgres = await startTestPostgres()
  })
  after(() => postgres.stop())
  beforeEach(async () => {
    database = await postgres.ledgerDatabase()
    log = createMemoryLog()
    world = createHeldWorld()
    ledger = createLedger(log.open(), world)
    await approveInvoice(ledger)
    await start()
  })
  afterEach(() => process.stop().catch(() => undefined))

  it('finishes a payment whose request ended early, and leaves a recent one to its request', async () => {
    const payment = newPayment('k', { reference: 'R' })
    await claimOnly(payment)
    await process.processNew()
    await world.pass(GRACE_MS - 1)
    expect(typesOf(payment)).to.deep.equal(['PaymentInitiated'])
    await world.pass(1)
    expect(typesOf(payment)).to.deep.equal(['PaymentInitiated', 'PaymentSucceeded'])
  })

  it('records the caller in whose name it acts, and its own authority', async () => {
    const payment = newPayment('k')
    await claimOnly(payment)
    await process.processNew()
    await world.pass(GRACE_MS)
    const [claimed, outcome] = log.events.filter(({ stream }) => stream === `payment-${payment.id}`)
    expect(outcome?.metadata).to.deep.include({
      subject: 'clerk',
      tenant: 'acme',
      authority: 'settlement',
      $correlationId: claimed?.metadata['$correlationId'],
      $causationId: claimed?.id,
    })
  })

  it('ignores a payment that its request has finished', async () => {
    await pay(ledger, newPayment('k', { settlement: 'deferred' }), context())
    await process.processNew()
    const before = log.events.length
    await world.pass(2 * GRACE_MS)
    expect(log.events).to.have.length(before)
    expect(await checkpoint()).to.equal(head())
  })

  it('finishes a refused payment with its refusal', async () => {
    const payment = newPayment('k', { amount: 2000n })
    await claimOnly(payment)
    await pay(ledger, newPayment('other', { amount: 1000n }), context())
    await process.processNew()
    await world.pass(GRACE_MS)
    expect(typesOf(payment)).to.deep.equal(['PaymentInitiated', 'PaymentFailed'])
    const { row } = await ledger.aggregates.load(invoiceEntity, id('inv'))
    expect(row).to.include({ amount_paid: 1000n, amount_pending: 0n })
  })

  it('applies a deferred payment to the invoice when the request ended early', async () => {
    const payment = newPayment('k', { settlement: 'deferred' })
    await pay(ledger, payment, context())
    await handle(ledger, paymentEntity, payment.id, { command: { type: 'SettlePayment' }, context: context() })
    await process.processNew()
    await world.pass(REQUEST_GRACE_MS)
    const { row } = await ledger.aggregates.load(invoiceEntity, id('inv'))
    expect(row).to.include({ amount_paid: 1000n, amount_pending: 0n })
  })

  it('releases the reservation of a failed payment when the request ended early', async () => {
    const payment = newPayment('k', { settlement: 'deferred' })
    await pay(ledger, payment, context())
    const command = { type: 'FailPayment' as const, code: 'card_declined' }
    await handle(ledger, paymentEntity, payment.id, { command, context: context() })
    await process.processNew()
    await world.pass(REQUEST_GRACE_MS)
    const { row } = await ledger.aggregates.load(invoiceEntity, id('inv'))
    expect(row).to.include({ amount_paid: 0n, amount_pending: 0n })
  })

  describe('keeps its checkpoint', () => {
    it('at the last event before the oldest open payment, while other events come', async () => {
      const before = log.events.findLast(({ stream }) => /^(invoice|payment|refund)-/.test(stream))?.position
      await claimOnly(newPayment('a'))
      await pay(ledger, newPayment('b'), context())
      await process.processNew()
      expect(await checkpoint()).to.equal(before)
      await claimOnly(newPayment('c', { amount: 10n }))
      await process.processNew()
      expect(await checkpoint()).to.equal(before)
    })

    it('so that the next process finds what this one had not finished', async () => {
      const payment = newPayment('k')
      await claimOnly(payment)
      await process.processNew()
      await process.stop()
      await start(2n)
      await process.processNew()
      await world.pass(GRACE_MS)
      expect(typesOf(payment)).to.deep.equal(['PaymentInitiated', 'PaymentSucceeded'])
      await process.processNew()
      expect(await checkpoint()).to.equal(head())
    })
  })

  it('in an old epoch does not move the checkpoint', async () => {
    await claimOnly(newPayment('k'))
    const old = process
    await start(2n)
    const failure = await old.processNew().catch((error: unknown) => error)
    expect(failure).to.be.instanceOf(Error).and.to.have.property('name', 'Replaced')
    expect(await checkpoint()).to.equal(0n)
    await old.stop()
  })

  it('finishes each of many payments, once also when two processes run', async () => {
    const payments = Array.from({ length: 40 }, (_, n) => newPayment(`k${n}`, { amount: 50n, reference: `R${n}` }))
    for (const payment of payments) await claimOnly(payment)
    await process.processNew()
    const first = process
    await start(2n)
    await process.processNew()
    for (let rounds = 0; rounds < 20; rounds += 1) await world.pass(GRACE_MS)
    for (const payment of payments) expect(typesOf(payment)).to.deep.equal(['PaymentInitiated', 'PaymentSucceeded'])
    const { row } = await ledger.aggregates.load(invoiceEntity, id('inv'))
    expect(row).to.include({ amount_paid: 2000n, amount_pending: 0n })
    await first.stop()
  })
})
