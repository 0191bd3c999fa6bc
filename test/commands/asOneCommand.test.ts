import { expect } from 'chai'
import { orderEntity } from '../../src/commands/entities.ts'
import { type ByteQuota, bytesOf, QuotaExceeded } from '../../src/commands/quotas/byteQuota.ts'
import { asOneCommand } from '../../src/commands/asOneCommand.ts'
import { createLedger, handle, type Ledger } from '../../src/commands/commandHandler.ts'
import { newIdempotencyRecord, idOfKey } from '../../src/commands/idempotency/record.ts'
import { raise } from '../../src/commands/invoices.ts'
import { pay } from '../../src/commands/payments.ts'
import { refund } from '../../src/commands/refunds.ts'
import { settle } from '../../src/commands/settlements.ts'
import { Unavailable } from '../../src/ports.ts'
import { createOrder, id } from '../streams/samples.ts'
import { createMemoryLog, type MemoryLog } from '../support/memoryStore.ts'
import { createVirtualWorld } from '../support/virtualWorld.ts'
import { approveInvoice, context, newPayment } from './fixtures.ts'

/** The event store becomes unavailable at each step of a command; `none` is reported only when nothing was written. */

const STEPS_MAX = 40
const EXPIRES = '2026-02-01T00:00:00.000Z'
const scope = { tenant: 'acme', subject: 'clerk', client: 'shop', operation: 'any' }
const keyed = { scope, key: 'k', secret: Buffer.alloc(32, 1) }

const invoiceOf = (isKeyed: boolean) => ({
  id: idOfKey('inv', keyed),
  order_id: id('ord'),
  due_date: '2026-03-01',
  metadata: {},
  idempotencyRecord: isKeyed ? newIdempotencyRecord(keyed, { order_id: id('ord') }, EXPIRES) : null,
})

const deferred = newPayment('p', { settlement: 'deferred', reference: 'R' })
const immediate = newPayment('p', { reference: 'R' })
const refundOf = {
  id: idOfKey('rfd', keyed),
  payment_id: immediate.id,
  amount: 400n,
  reason: 'broken',
  idempotencyRecord: newIdempotencyRecord(keyed, { payment_id: immediate.id, amount: 400 }, EXPIRES),
}

type Case = {
  readonly before: (ledger: Ledger) => Promise<unknown>
  readonly run: (ledger: Ledger) => Promise<unknown>
}

const order = (ledger: Ledger) =>
  handle(ledger, orderEntity, id('ord'), { command: createOrder, context: context(), load: 'assume_empty' })
const invoice = (ledger: Ledger) => approveInvoice(ledger)
const paid =
  (payment: typeof immediate) =>
  async (ledger: Ledger): Promise<void> => {
    await approveInvoice(ledger)
    await pay(ledger, payment, context())
  }

const commands: Readonly<Record<string, Case>> = {
  'a payment': { before: invoice, run: ledger => pay(ledger, immediate, context()) },
  'a refund': { before: paid(immediate), run: ledger => refund(ledger, refundOf, context()) },
  'a settlement': {
    before: paid(deferred),
    run: ledger => settle(ledger, deferred.id, { type: 'SettlePayment' }, context()),
  },
  'a failure': {
    before: paid(deferred),
    run: ledger => settle(ledger, deferred.id, { type: 'FailPayment', code: 'declined' }, context()),
  },
  'an invoice with a key': { before: order, run: ledger => raise(ledger, invoiceOf(true), context()) },
  'an invoice without a key': { before: order, run: ledger => raise(ledger, invoiceOf(false), context()) },
}

/** A process whose event store is available for `steps` steps. */
const losing = (log: MemoryLog, steps: number): Ledger => {
  let left = steps
  const lose = (at: string): void => {
    left -= 1
    if (left < 0 && at !== 'appended') throw new Unavailable('event store', { effect: 'none' })
  }
  return createLedger(
    log.open(({ at }) => lose(at)),
    createVirtualWorld(),
  )
}

/** The error with which the command fails; undefined when it succeeds. */
const failureOf = (ledger: Ledger, { run }: Case): Promise<unknown> =>
  asOneCommand(ledger, run).then(
    () => undefined,
    (error: unknown) => error,
  )

describe('a command whose store becomes unavailable', () => {
  for (const [name, command] of Object.entries(commands))
    it(`reports no effect only when it had none: ${name}`, async () => {
      const effects = new Set<string>()
      for (let steps = 0; steps < STEPS_MAX; steps += 1) {
        const log = createMemoryLog()
        await command.before(createLedger(log.open(), createVirtualWorld()))
        const before = log.events.length
        const failure = await failureOf(losing(log, steps), command)
        if (failure === undefined) continue
        if (!(failure instanceof Unavailable)) throw new Error(`lost at step ${steps}`, { cause: failure })
        effects.add(failure.effect)
        expect(failure.effect, `lost at step ${steps}`).to.equal(log.events.length > before ? 'unknown' : 'none')
        const retried = await asOneCommand(createLedger(log.open(), createVirtualWorld()), command.run)
        expect(retried, `retried after step ${steps}`).to.not.have.property('ok', false)
      }
      // After the idempotency record is durable, the outcome is "in progress" and not a failure.
      expect([...effects]).to.include('none')
      if (name !== 'a payment') expect([...effects]).to.include('unknown')
    })

  it('reports an unknown effect also for a retry that has found its key used', async () => {
    const log = createMemoryLog()
    const healthy = createLedger(log.open(), createVirtualWorld())
    await paid(immediate)(healthy)
    // Of the first attempt, only the idempotency record is durable.
    const first = await failureOf(losing(log, 5), { before: order, run: ledger => refund(ledger, refundOf, context()) })
    expect(first).to.include({ effect: 'unknown' })
    const length = log.events.length
    const effects = new Map<number, unknown>()
    for (let steps = 0; steps < STEPS_MAX; steps += 1) {
      const failure = await failureOf(losing(log, steps), {
        before: order,
        run: ledger => refund(ledger, refundOf, context()),
      })
      if (log.events.length > length) break
      effects.set(steps, failure instanceof Unavailable && failure.effect)
    }
    expect([...effects.values()].at(-1), 'at the last step before an append').to.equal('unknown')
  })
})

/** A quota that is used up from the check after `checks` on. Process managers' work and used keys are not checked. */
const usedUpAfter = (checks: number): ByteQuota & { readonly counted: () => number } => {
  let left = checks
  let bytes = 0
  const refusal = new QuotaExceeded({ usedBytes: 10, bytesPerDay: 10, resetMs: 1 })
  return {
    check: async (_tenant, use) => {
      left -= 1
      if (left < 0 && use !== 'completion') throw refusal
    },
    count: (_tenant, added) => void (bytes += added),
    counted: () => bytes,
  }
}

describe('a command whose tenant has used up its quota of bytes', () => {
  for (const [name, command] of Object.entries(commands))
    it(`stores nothing, or is finished once it has begun: ${name}`, async () => {
      for (const checks of [0, 1, 2]) {
        const log = createMemoryLog()
        await command.before(createLedger(log.open(), createVirtualWorld()))
        const before = log.events.length
        const quota = usedUpAfter(checks)
        const failure = await failureOf(createLedger(log.open(), createVirtualWorld(), quota), command)
        if (checks === 0) {
          expect(failure).to.be.instanceOf(QuotaExceeded)
          expect(log.events.length, 'nothing is stored').to.equal(before)
          expect(quota.counted()).to.equal(0)
          continue
        }
        expect(failure).to.equal(undefined)
        const stored = log.events.slice(before)
        expect(quota.counted()).to.equal(bytesOf(stored))
        const again = await failureOf(createLedger(log.open(), createVirtualWorld(), usedUpAfter(0)), command)
        if (again !== undefined) expect(name).to.equal('an invoice without a key')
        expect(log.events.length, 'a repetition stores nothing').to.equal(before + stored.length)
      }
    })

  it('is finished by another attempt under the same key', async () => {
    const log = createMemoryLog()
    await order(createLedger(log.open(), createVirtualWorld()))
    await paid(immediate)(createLedger(log.open(), createVirtualWorld()))
    const refunding = { before: order, run: (ledger: Ledger) => refund(ledger, refundOf, context()) }
    // Its reads come first.
    expect(await failureOf(losing(log, 5), refunding)).to.be.instanceOf(Unavailable)
    expect(await failureOf(createLedger(log.open(), createVirtualWorld(), usedUpAfter(0)), refunding)).to.equal(
      undefined,
    )
    expect(log.events.at(-1)?.type).to.equal('RefundApplied')
  })
})
