import { expect } from 'chai'
import { invoiceEntity, paymentEntity, referenceEntity } from '../../src/commands/entities.ts'
import { createLedger, type Ledger } from '../../src/commands/commandHandler.ts'
import { finishPayment, type NewPayment, pay } from '../../src/commands/payments.ts'
import { createMemoryLog, type MemoryLog } from '../support/memoryStore.ts'
import { createVirtualWorld } from '../support/virtualWorld.ts'
import { id } from '../streams/samples.ts'
import { approveInvoice, context, newPayment, typesIn } from './fixtures.ts'
import { type Chances, createScheduler } from './scheduler.ts'
import { breadth } from '../support/breadth.ts'

/**
 * Properties of concurrent payments: for every interleaving of steps and every crash, each payment reaches one outcome,
 * and all streams agree on it.
 */

const SEEDS = breadth(50, 200)
/** More steps than any payment takes: reads, appends, acknowledgements. */
const STEPS_MAX = 40

const OUTCOMES = new Set(['PaymentAccepted', 'PaymentSucceeded', 'PaymentFailed'])

type Answer = Awaited<ReturnType<typeof pay>>

const stateOf = async (ledger: Ledger, payment: NewPayment) =>
  (await ledger.aggregates.load(paymentEntity, payment.id)).state

/** Payment recovery after a crash: completes every payment with an idempotency record and without an outcome. */
const recover = async (log: MemoryLog, payments: readonly NewPayment[]): Promise<Ledger> => {
  const ledger = createLedger(log.open(), createVirtualWorld())
  for (const payment of payments) await finishPayment(ledger, payment.id, context({ authority: 'settlement' }))
  return ledger
}

/** Expects the streams of payment, invoice and reference to agree. */
const expectConsistent = async (log: MemoryLog, ledger: Ledger, payments: readonly NewPayment[]): Promise<void> => {
  const { state: invoice } = await ledger.aggregates.load(invoiceEntity, id('inv'))
  if (invoice.status === 'none') throw new Error('The invoice was not raised.')
  expect(invoice.paid + invoice.pending <= invoice.due, 'within what is due').to.equal(true)
  expect(new Set(log.events.map(event => event.id)).size, 'an id for each event').to.equal(log.events.length)
  for (const payment of new Map(payments.map(one => [one.id, one])).values()) {
    const types = typesIn(log.events, `payment-${payment.id}`)
    const outcomes = types.filter(type => OUTCOMES.has(type))
    expect(outcomes, `outcomes of ${payment.id}`).to.have.length(types.length === 0 ? 0 : 1)
    const part = invoice.payments.get(payment.id)?.status
    const isTaken = part === 'applied' || part === 'reserved'
    expect(isTaken, `${outcomes.join()} and ${part}`).to.equal(outcomes.length > 0 && outcomes[0] !== 'PaymentFailed')
    if (payment.reference === null) continue
    const reference = await ledger.aggregates.load(referenceEntity, payment.reference.stream)
    expect(reference.state.holder === payment.id, `reference after ${outcomes.join()}`).to.equal(isTaken)
  }
}

/** Expects the outcome in a response to be final. */
const expectFinal = async (ledger: Ledger, payment: NewPayment, answer: Answer): Promise<void> => {
  const state = await stateOf(ledger, payment)
  if (answer.kind === 'created' || answer.kind === 'replayed')
    expect(state.status).to.equal(answer.row.state === 'pending' ? 'accepted' : answer.row.state)
  else if (answer.kind === 'refused' && answer.firstCorrelationId !== undefined)
    expect(state).to.include({ status: 'refused', code: answer.rejection.rejected })
  else if (answer.kind === 'refused')
    // A refusal before the idempotency record is not recorded. Another driver of the payment may have succeeded since,
    // if the reference was released.
    expect(state.status === 'succeeded' && answer.rejection.rejected !== 'payment_reference_conflict').to.equal(false)
  else expect.fail(`A caller with a wait of a minute got ${answer.kind}.`)
}

/** Runs the payments in the order of the seed, with the faults of the chances. Resolves with the number of responses. */
const run = async (seed: number, payments: readonly NewPayment[], chances: Chances): Promise<number> => {
  const log = createMemoryLog()
  await approveInvoice(createLedger(log.open(), createVirtualWorld()))
  const scheduler = createScheduler(log, seed, chances)
  const answers: [NewPayment, Answer][] = []
  const calls = payments.map(async payment => {
    answers.push([payment, await pay(scheduler.process(), payment, context())])
  })
  await scheduler.run(calls)
  const ledger = await recover(log, payments)
  await expectConsistent(log, ledger, payments)
  for (const [payment, answer] of answers)
    if (answer.kind !== 'in_progress' || chances.lostAck === 0) await expectFinal(ledger, payment, answer)
  return answers.length
}

const scenarios: Readonly<Record<string, () => NewPayment[]>> = {
  'two drivers of one payment': () => [newPayment('k', { reference: 'R' }), newPayment('k', { reference: 'R' })],
  'two drivers of one deferred payment': () =>
    Array.from({ length: 2 }, () => newPayment('k', { reference: 'R', settlement: 'deferred' })),
  'two payments that compete for one amount': () => [
    newPayment('a', { amount: 1500n, reference: 'A' }),
    newPayment('b', { amount: 1500n, reference: 'B' }),
  ],
  'two drivers each of two payments that compete for one amount': () =>
    ['a', 'b', 'a', 'b'].map(key => newPayment(key, { amount: 1500n, reference: key })),
  'two payments that compete for one reference': () => ['a', 'b'].map(key => newPayment(key, { reference: 'R' })),
  'two drivers each of two payments that compete for one amount and one reference': () =>
    ['a', 'b', 'a', 'b'].map(key => newPayment(key, { amount: 1500n, reference: 'R' })),
}

describe('a payment with concurrent ones', () => {
  for (const [name, payments] of Object.entries(scenarios))
    for (const [how, chances] of Object.entries({
      'in any order of steps': { crash: 0, lostAck: 0 },
      'with acknowledgements lost': { crash: 0, lostAck: 0.2 },
      'with processes that crash at any step': { crash: 0.05, lostAck: 0.1 },
    }))
      it(`reaches one outcome: ${name}, ${how}, ${SEEDS} seeds`, async () => {
        let answered = 0
        for (let seed = 1; seed <= SEEDS; seed += 1)
          answered += await run(seed, payments(), chances).catch((error: unknown) => {
            throw new Error(`seed ${seed}`, { cause: error })
          })
        const calls = SEEDS * payments().length
        const hasFaults = chances.crash > 0 || chances.lostAck > 0
        expect(answered, 'calls with a response').to.be.within(hasFaults ? calls / 4 : calls, calls)
      })
})

class Crashed extends Error {}

/** A process that crashes after the given number of steps. */
const crashing = (log: MemoryLog, steps: number): Ledger => {
  let left = steps
  return createLedger(
    log.open(() => {
      left -= 1
      if (left < 0) throw new Crashed()
    }),
    createVirtualWorld(),
  )
}

describe('a payment whose process crashes', () => {
  const cases = {
    'accepted at once': [newPayment('k', { reference: 'R' }), 'PaymentSucceeded'],
    deferred: [newPayment('k', { reference: 'R', settlement: 'deferred' }), 'PaymentAccepted'],
    'without a reference': [newPayment('k'), 'PaymentSucceeded'],
  } as const

  for (const [name, [payment, outcome]] of Object.entries(cases))
    for (const completion of ['the retry of its caller', 'payment recovery'] as const)
      it(`is completed by ${completion}, after a crash at any step: ${name}`, async () => {
        let crashes = 0
        for (let steps = 0; steps < STEPS_MAX; steps += 1) {
          const log = createMemoryLog()
          await approveInvoice(createLedger(log.open(), createVirtualWorld()))
          const hasCrashed = await pay(crashing(log, steps), payment, context()).then(
            () => false,
            () => true,
          )
          crashes += hasCrashed ? 1 : 0
          const initiated = typesIn(log.events, `payment-${payment.id}`).length > 0
          const ledger = createLedger(log.open(), createVirtualWorld())
          if (completion === 'payment recovery') await finishPayment(ledger, payment.id, context())
          else expect((await pay(ledger, payment, context())).kind).to.equal(initiated ? 'replayed' : 'created')
          const target = initiated || completion !== 'payment recovery' ? ['PaymentInitiated', outcome] : []
          expect(typesIn(log.events, `payment-${payment.id}`), `crash at step ${steps}`).to.deep.equal(target)
          await expectConsistent(log, ledger, [payment])
        }
        expect(crashes, 'steps of a payment').to.be.within(6, STEPS_MAX - 1)
      })
})
