import { expect } from 'chai'
import { invoiceEntity } from '../../src/commands/entities.ts'
import { createLedger, type Ledger } from '../../src/commands/commandHandler.ts'
import { finishPayment, type NewPayment, pay } from '../../src/commands/payments.ts'
import { followSettlement, settle } from '../../src/commands/settlements.ts'
import { recordedOf } from '../../src/lib/storedEvents.ts'
import { payment as paymentAggregate } from '../../streams/payment/index.ts'
import { createMemoryLog, type MemoryLog } from '../support/memoryStore.ts'
import { createVirtualWorld } from '../support/virtualWorld.ts'
import { id } from '../streams/samples.ts'
import { approveInvoice, context, newPayment, typesIn } from './fixtures.ts'
import { type Chances, createScheduler } from './scheduler.ts'
import { breadth } from '../support/breadth.ts'

/** Settlement of a payment whose creating request is still in progress. */

const SEEDS = breadth(50, 200)
const COMMANDS = [{ type: 'SettlePayment' }, { type: 'FailPayment', code: 'card_declined' }] as const

type Command = (typeof COMMANDS)[number]

/** Recovery after a crash as payment recovery does it. */
const recover = async (log: MemoryLog, payment: NewPayment): Promise<Ledger> => {
  const ledger = createLedger(log.open(), createVirtualWorld())
  await finishPayment(ledger, payment.id, context())
  const events = log.events.filter(({ stream }) => stream === `payment-${payment.id}`)
  for (const { event } of events.map(stored => recordedOf(paymentAggregate.codec, stored)))
    if ((event.type === 'PaymentSucceeded' || event.type === 'PaymentFailed') && event.data.settlement === 'deferred')
      await followSettlement(
        ledger,
        payment.id,
        { terms: event.data, failed: event.type === 'PaymentFailed' },
        context(),
      )
  return ledger
}

/** Two requests create the payment while three commands settle it, in the order of the seed. */
const run = async (seed: number, payment: NewPayment, command: Command, chances: Chances) => {
  const log = createMemoryLog()
  await approveInvoice(createLedger(log.open(), createVirtualWorld()))
  const scheduler = createScheduler(log, seed, chances)
  const acknowledged: boolean[] = []
  const drivers = [pay(scheduler.process(), payment, context()), pay(scheduler.process(), payment, context())]
  const settlers = Array.from({ length: 3 }, async () => {
    acknowledged.push((await settle(scheduler.process(), payment.id, command, context())).ok)
  })
  await scheduler.run([...drivers, ...settlers])
  const ledger = await recover(log, payment)
  const { state: invoice } = await ledger.aggregates.load(invoiceEntity, id('inv'))
  if (invoice.status === 'none') throw new Error('The invoice was not raised.')
  const types = typesIn(log.events, `payment-${payment.id}`)
  return { types, isAcknowledged: acknowledged.includes(true), amounts: [invoice.paid, invoice.pending], ledger }
}

const AFTER = { SettlePayment: 'PaymentSucceeded', FailPayment: 'PaymentFailed' } as const

/** The permitted outcomes: the types of the payment's events, with the amounts of the invoice. */
const outcomesOf = (settlement: 'immediate' | 'deferred', command: Command) => {
  const begun = 'PaymentInitiated'
  if (settlement === 'immediate') return [{ types: [begun, 'PaymentSucceeded'], amounts: [1000n, 0n] }]
  const settled = { types: [begun, 'PaymentAccepted', AFTER[command.type]] }
  const isPaid = command.type === 'SettlePayment'
  return [
    { types: [begun, 'PaymentAccepted'], amounts: [0n, 1000n] },
    { ...settled, amounts: [isPaid ? 1000n : 0n, 0n] },
  ]
}

describe('a settlement that does not wait for its payment', () => {
  for (const settlement of ['immediate', 'deferred'] as const)
    for (const command of COMMANDS)
      for (const [how, chances] of Object.entries({
        'in any order of steps': { crash: 0, lostAck: 0 },
        'with processes that crash at any step': { crash: 0.05, lostAck: 0.1 },
      }))
        it(`changes an accepted deferred payment and nothing else: ${settlement}, ${command.type}, ${how}`, async () => {
          const payment = newPayment('k', { settlement, reference: 'R' })
          let settled = 0
          for (let seed = 1; seed <= SEEDS; seed += 1) {
            const { types, amounts, isAcknowledged, ledger } = await run(seed, payment, command, chances)
            // Every process may have crashed before the idempotency record.
            if (types.length === 0) continue
            expect(outcomesOf(settlement, command), `seed ${seed}`).to.deep.include({ types, amounts })
            if (isAcknowledged) expect(types.at(-1), `seed ${seed}`).to.equal(AFTER[command.type])
            if (types.length > 2) settled += 1
            const replayed = await pay(ledger, payment, context())
            expect(replayed.kind, `the replay of the key, seed ${seed}`).to.equal('replayed')
          }
          expect(settled > 0, 'some settlements came in time').to.equal(settlement === 'deferred')
        })
})
