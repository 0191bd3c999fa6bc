import { expect } from 'chai'
import { invoiceEntity, paymentEntity } from '../../src/commands/entities.ts'
import { createLedger, handle, type Ledger } from '../../src/commands/commandHandler.ts'
import { finishPayment, type NewPayment, pay, type PersonalReference } from '../../src/commands/payments.ts'
import { settle } from '../../src/commands/settlements.ts'
import { createMemoryLog, type MemoryLog } from '../support/memoryStore.ts'
import { createVirtualWorld, type VirtualWorld } from '../support/virtualWorld.ts'
import { id } from '../streams/samples.ts'
import { approveInvoice, context, newPayment, typesIn } from './fixtures.ts'
import { createTimedWorld } from './timedWorld.ts'

const DAY_MS = 24 * 60 * 60 * 1000

describe('paying', () => {
  let log: MemoryLog
  let world: VirtualWorld
  let ledger: Ledger

  /** A virtual world in which no timeout fires. */
  const withoutTimeouts = (): VirtualWorld => {
    const virtual = createVirtualWorld()
    const sleep: VirtualWorld['sleep'] = (timeMs, signal) =>
      signal === undefined
        ? virtual.sleep(timeMs)
        : new Promise(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
    return { ...virtual, sleep }
  }
  const payNow = (payment: NewPayment, more = {}) => pay(ledger, payment, context(more))
  const typesOf = ({ id: paymentId }: NewPayment) => typesIn(log.events, `payment-${paymentId}`)
  const amounts = async () => {
    const { row } = await ledger.aggregates.load(invoiceEntity, id('inv'))
    return { paid: row?.amount_paid, pending: row?.amount_pending, state: row?.state }
  }

  beforeEach(async () => {
    log = createMemoryLog()
    world = withoutTimeouts()
    ledger = createLedger(log.open(), world)
    await approveInvoice(ledger)
  })

  describe('for the first time', () => {
    it('at once makes a payment that has succeeded', async () => {
      const payment = newPayment('k', { reference: 'R', metadata: { till: '4' } })
      const answer = await payNow(payment)
      expect(answer).to.deep.include({ kind: 'created', position: log.head() })
      expect(answer.kind === 'created' && answer.row).to.include({
        id: payment.id,
        state: 'succeeded',
        amount: 1000n,
        order_id: id('ord'),
        reference: 'R',
        revision: 1n,
        created_by: 'clerk',
      })
      expect(await amounts()).to.deep.equal({ paid: 1000n, pending: 0n, state: 'partially_paid' })
    })

    it('deferred makes a payment that is pending and holds its amount', async () => {
      const answer = await payNow(newPayment('k', { settlement: 'deferred' }))
      expect(answer.kind === 'created' && answer.row.state).to.equal('pending')
      expect(await amounts()).to.deep.equal({ paid: 0n, pending: 1000n, state: 'approved' })
    })
  })

  it('returns the outcome that another driver has recorded, and not a later state', async () => {
    const payment = newPayment('k', { settlement: 'deferred' })
    const stream = `payment-${payment.id}`
    const other = createLedger(log.open(), world)
    const overtaken = createLedger(
      log.open(async ({ at, stream: to }) => {
        if (at !== 'append' || to !== stream || typesIn(log.events, stream).length !== 1) return
        await finishPayment(other, payment.id, context())
        await settle(other, payment.id, { type: 'SettlePayment' }, context())
      }),
      world,
    )
    const answer = await pay(overtaken, payment, context())
    expect(typesOf(payment)).to.deep.equal(['PaymentInitiated', 'PaymentAccepted', 'PaymentSucceeded'])
    expect(answer.kind === 'created' && answer.row).to.include({ state: 'pending', revision: 1n })
  })

  describe('is refused before the idempotency record, without an event, for', () => {
    const refusals: Readonly<Record<string, [NewPayment, string]>> = {
      'an unknown invoice': [newPayment('k', { invoice_id: id('inv', 9) }), 'resource_not_found'],
      'another currency': [newPayment('k', { currency: 'EUR' }), 'payment_not_allowed'],
      'more than is due': [newPayment('k', { amount: 2501n }), 'payment_exceeds_due'],
    }
    for (const [name, [payment, code]] of Object.entries(refusals))
      it(name, async () => {
        const before = log.events.length
        const answer = await payNow(payment)
        expect(answer.kind === 'refused' && answer.rejection.rejected).to.equal(code)
        expect(answer).to.not.have.property('firstCorrelationId')
        expect(log.events).to.have.length(before)
      })

    it('an invoice of another tenant, like one that does not exist', async () => {
      const before = log.events.length
      const [theirs, none] = [newPayment('k'), newPayment('k', { invoice_id: id('inv', 9) })]
      expect(await payNow(theirs, { tenant: 'other' })).to.deep.equal(await payNow(none, { tenant: 'other' }))
      expect(log.events).to.have.length(before)
    })

    it('a reference that another payment has, with its id', async () => {
      const first = newPayment('a', { reference: 'R' })
      await payNow(first)
      const before = log.events.length
      expect(await payNow(newPayment('b', { reference: 'R' }))).to.deep.equal({
        kind: 'refused',
        rejection: { rejected: 'payment_reference_conflict', params: { payment_id: first.id } },
      })
      expect(log.events).to.have.length(before)
    })
  })

  it('for more than is due is refused with the amount that is still due', async () => {
    await payNow(newPayment('a', { amount: 2000n }))
    const answer = await payNow(newPayment('b', { amount: 501n }))
    expect(answer.kind === 'refused' && answer.rejection.params).to.deep.equal({
      state: 'partially_paid',
      still_due: 500n,
      amount_due: 2500n,
      currency: 'USD',
    })
  })

  it('after a refusal succeeds with the same key, when the request is corrected', async () => {
    await payNow(newPayment('k', { amount: 9000n }))
    expect((await payNow(newPayment('k', { amount: 2500n }))).kind).to.equal('created')
    expect(await amounts()).to.include({ state: 'paid' })
  })

  describe('again with the same key', () => {
    it('returns the first payment as it was, and not a later state', async () => {
      const payment = newPayment('k', { settlement: 'deferred' })
      const first = await payNow(payment)
      await settle(ledger, payment.id, { type: 'SettlePayment' }, context())
      const before = log.events.length
      const again = await pay(createLedger(log.open(), world), payment, context())
      expect(again).to.deep.equal({ ...first, kind: 'replayed' })
      expect(log.events).to.have.length(before)
    })

    it('returns the first payment also when the invoice would accept no other', async () => {
      const payment = newPayment('k', { amount: 2500n })
      await payNow(payment)
      expect((await payNow(payment)).kind).to.equal('replayed')
      expect(typesOf(payment)).to.deep.equal(['PaymentInitiated', 'PaymentSucceeded'])
    })

    it('refuses another request with the members that differ, and pays nothing', async () => {
      await payNow(newPayment('k'))
      const changed = newPayment('k', { amount: 999n, metadata: { till: '4' } })
      expect(await payNow(changed)).to.deep.equal({ kind: 'key_reused', pointers: ['/amount', '/metadata/till'] })
      expect(await amounts()).to.include({ paid: 1000n })
    })

    it('is refused when the key has expired, and names the payment', async () => {
      const payment = newPayment('k')
      await payNow(payment)
      world.pass(31 * DAY_MS)
      expect(await payNow(payment)).to.deep.equal({ kind: 'key_expired', id: payment.id })
      expect(typesOf(payment)).to.have.length(2)
    })

    it('fifty times at once makes one payment, which is in every response', async () => {
      const payment = newPayment('k', { reference: 'R' })
      const ledgers = [ledger, createLedger(log.open(), world), createLedger(log.open(), world)]
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, n) => pay(ledgers[n % 3] ?? ledger, payment, context())),
      )
      const kinds = new Set(answers.map(({ kind }) => kind))
      expect([...kinds].every(kind => kind === 'created' || kind === 'replayed')).to.equal(true)
      for (const answer of answers) expect('row' in answer && answer.row.id).to.equal(payment.id)
      expect(typesOf(payment)).to.deep.equal(['PaymentInitiated', 'PaymentSucceeded'])
      expect(await amounts()).to.include({ paid: 1000n })
    })
  })

  it('thirty times at once for more than is due never charges more than is due', async () => {
    const payments = Array.from({ length: 30 }, (_, n) => newPayment(`k${n}`, { amount: 200n }))
    const answers = await Promise.all(payments.map(payment => payNow(payment)))
    const made = answers.filter(({ kind }) => kind === 'created')
    const refused = answers.filter(answer => answer.kind === 'refused')
    expect([made.length, refused.length]).to.deep.equal([12, 18])
    for (const { rejection } of refused) expect(rejection.rejected).to.equal('payment_exceeds_due')
    expect(await amounts()).to.include({ paid: 2400n })
    const again = await Promise.all(payments.map(payment => payNow(payment)))
    expect(again.map(({ kind }) => (kind === 'replayed' ? 'created' : kind))).to.deep.equal(
      answers.map(({ kind }) => kind),
    )
  })

  it('is in progress for a repetition while another one waits for the outcome, also without Postgres', async () => {
    const timed = createTimedWorld()
    const slow = Promise.withResolvers<void>()
    const isReservation = (stream: string) => stream === `invoice-${id('inv')}`
    const store = log.open(({ at, stream }) => (at === 'append' && isReservation(stream) ? slow.promise : undefined))
    const process = createLedger(store, timed)
    const begun = Promise.withResolvers<void>()
    const stored: PersonalReference['store'] = async () => ({ token: id('prf') })
    const down: PersonalReference['store'] = async answerOfKey => {
      begun.resolve()
      return { answer: (await answerOfKey()) ?? expect.fail('The key was used.') }
    }
    const ask = (by: PersonalReference['store'], waitMs: number) => {
      const reference = { stream: id('ref'), store: by }
      return pay(process, { ...newPayment('k', { reference: 'R' }), reference, waitMs }, context())
    }
    const first = ask(stored, 0)
    await timed.run(first)
    expect((await first).kind).to.equal('in_progress')
    const patient = ask(down, 60_000)
    await begun.promise
    const third = ask(down, 0)
    await timed.run(third)
    expect((await third).kind).to.equal('in_progress')
    slow.resolve()
    expect((await patient).kind).to.equal('replayed')
  })

  it('is in progress for a caller who does not wait, and completes afterwards', async () => {
    const suspended = createLedger(
      log.open(() => new Promise(resolve => setImmediate(resolve))),
      createVirtualWorld(),
    )
    const payment = { ...newPayment('k'), waitMs: 0 }
    expect((await pay(suspended, payment, context())).kind).to.equal('in_progress')
    await handle(suspended, paymentEntity, payment.id, { command: { type: 'ConfirmPayment' }, context: context() })
    for (let loop = 0; loop < 20; loop += 1) await new Promise(resolve => setImmediate(resolve))
    expect(typesOf(payment)).to.deep.equal(['PaymentInitiated', 'PaymentSucceeded'])
  })
})
