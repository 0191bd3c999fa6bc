import { expect } from 'chai'
import {
  APPEND_DEADLINE_MS,
  KEY_WAIT_MS,
  PAYMENT_DEADLINE_MS,
  REQUEST_DEADLINE_MS,
  waitMaxMs,
} from '../../src/settings/timeBudgets.ts'
import {
  RECOVERY_APPENDS_MS,
  RECOVERED_WITHIN_MS,
  PAYMENT_GRACE_MS,
  RECOVERY_TICK_MS,
  REQUEST_GRACE_MS,
  TAKE_OVER_MS,
} from '../../src/processes/recoveryTimes.ts'
import { leaseDefaults } from '../../src/adapters/postgres/lease.ts'
import { createLedger, type Ledger } from '../../src/commands/commandHandler.ts'
import { pay } from '../../src/commands/payments.ts'
import { UNAVAILABLE_RETRY_MS } from '../../src/feeds/feedLoop.ts'
import { createMemoryLog } from '../support/memoryStore.ts'
import { createVirtualWorld } from '../support/virtualWorld.ts'
import { approveInvoice, context, newPayment } from '../commands/fixtures.ts'
import { createTimedWorld, type TimedWorld } from '../commands/timedWorld.ts'

describe('the time that a request may take', () => {
  it('is divided into parts that fit into their whole', () => {
    expect([REQUEST_DEADLINE_MS, PAYMENT_DEADLINE_MS, APPEND_DEADLINE_MS, KEY_WAIT_MS]).to.deep.equal([
      10_000, 5_000, 3_000, 2_000,
    ])
    for (const deadlineMs of [REQUEST_DEADLINE_MS, PAYMENT_DEADLINE_MS]) {
      expect(waitMaxMs(deadlineMs)).to.be.below(deadlineMs)
      expect(APPEND_DEADLINE_MS, 'an append fails before its request').to.be.below(waitMaxMs(deadlineMs))
    }
    expect(KEY_WAIT_MS).to.be.below(waitMaxMs(PAYMENT_DEADLINE_MS))
    expect(PAYMENT_GRACE_MS, 'recovery begins after the request').to.be.at.least(PAYMENT_DEADLINE_MS)
    expect(REQUEST_GRACE_MS, 'an append of a request has ended').to.be.at.least(APPEND_DEADLINE_MS)
  })

  it('leaves recovery enough to complete interrupted requests within ten seconds after a repair', () => {
    expect(RECOVERED_WITHIN_MS).to.equal(10_000)
    for (const graceMs of [PAYMENT_GRACE_MS, REQUEST_GRACE_MS])
      expect(TAKE_OVER_MS + graceMs + RECOVERY_TICK_MS + RECOVERY_APPENDS_MS).to.be.at.most(RECOVERED_WITHIN_MS)
    // A waiting process tries the lock and begins a run, and begins another one if a dependency did not respond.
    expect(leaseDefaults.pollMs + 2 * UNAVAILABLE_RETRY_MS).to.be.below(TAKE_OVER_MS / 2)
  })

  /** A ledger whose store needs this time for each append. */
  const slow = async (appendMs: number): Promise<{ ledger: Ledger; world: TimedWorld }> => {
    const log = createMemoryLog()
    await approveInvoice(createLedger(log.open(), createVirtualWorld()))
    const world = createTimedWorld()
    const store = log.open(({ at }) => (at === 'append' ? world.sleep(appendMs) : undefined))
    return { ledger: createLedger(store, world), world }
  }

  const waitMs = waitMaxMs(PAYMENT_DEADLINE_MS)
  for (const appendMs of [1, 900, 1_400, 2_000, 2_900])
    it(`suffices to respond that a payment is in progress, when an append takes ${appendMs} ms`, async () => {
      const { ledger, world } = await slow(appendMs)
      const paying = pay(ledger, newPayment('k', { reference: 'R', waitMs }), context())
      const tookMs = await world.run(paying)
      // Four appends: idempotency record, reference, reservation and outcome.
      expect((await paying).kind).to.equal(4 * appendMs <= waitMs ? 'created' : 'in_progress')
      expect(tookMs).to.be.at.most(waitMs)
    })

  it('begins with each request, also with a retry that waits for the same payment', async () => {
    const { ledger, world } = await slow(1_400)
    const payment = newPayment('k', { reference: 'R', waitMs })
    const first = pay(ledger, payment, context())
    await world.run(first)
    const second = pay(ledger, payment, context())
    const tookMs = await world.run(second)
    expect([(await first).kind, (await second).kind]).to.deep.equal(['in_progress', 'replayed'])
    expect(tookMs).to.be.at.most(waitMs)
  })
})
