import { expect } from 'chai'
import { invoiceEntity, orderEntity } from '../../src/commands/entities.ts'
import { Contended, createLedger, handle, type Ledger } from '../../src/commands/commandHandler.ts'
import { eventIdOf } from '../../src/lib/identifiers.ts'
import { type EventStore, Unavailable } from '../../src/ports.ts'
import type { InvoiceCommand } from '../../streams/invoice/index.ts'
import { createMemoryLog, type MemoryLog, type OnStep } from '../support/memoryStore.ts'
import { createVirtualWorld, type VirtualWorld } from '../support/virtualWorld.ts'
import { createOrder, id } from '../streams/samples.ts'
import { rejectionOf } from '../support/rejection.ts'
import { approveInvoice, context, typesIn } from './fixtures.ts'

const ORDER = id('ord')
const STREAM = `order-${ORDER}`
/** The number of attempts of `handle`. */
const ATTEMPTS = 12

const change = (description: string) => ({ type: 'ChangeOrder' as const, description })
const cancel = { type: 'CancelOrder' as const, reason: null }
const sentAgain = { commandId: 'of-a-process', mayBeRepeated: true }

describe('handling a command', () => {
  let log: MemoryLog
  let world: VirtualWorld
  let ledger: Ledger

  const ledgerOf = (onStep?: OnStep): Ledger => createLedger(log.open(onStep), world)
  const create = (of = ledger) =>
    handle(of, orderEntity, ORDER, { command: createOrder, context: context(), load: 'assume_empty' })
  const describeAs = (text: string, of = ledger) =>
    handle(of, orderEntity, ORDER, { command: change(text), context: context() })
  const descriptionOf = async (of = ledger) => (await of.aggregates.load(orderEntity, ORDER)).row?.description

  /** Runs `work` before the next `times` appends, as a concurrent process would. */
  const withConcurrent = (work: () => Promise<unknown>, times = 1): Ledger => {
    let left = times
    return ledgerOf(async ({ at }) => {
      if (at !== 'append' || left === 0) return
      left -= 1
      await work()
    })
  }

  beforeEach(() => {
    log = createMemoryLog()
    world = createVirtualWorld()
    ledger = ledgerOf()
  })

  describe('that is accepted', () => {
    it('appends its events and returns the stream as it is then', async () => {
      const created = await create()
      expect(created).to.deep.include({ ok: true, revision: 0n, position: log.head() })
      const changed = await describeAs('x')
      expect(changed).to.deep.include({ ok: true, revision: 1n, position: log.head() })
      expect(changed.ok && changed.row).to.include({ description: 'x', revision: 1n, state: 'open' })
      expect(typesIn(log.events, STREAM)).to.deep.equal(['OrderCreated', 'OrderChanged'])
    })

    it('stores caller, correlation, authority and time, with event ids that are derived from the command', async () => {
      const requested = context({ traceparent: '00-a-b-01' })
      await handle(ledger, orderEntity, ORDER, { command: createOrder, context: requested, load: 'assume_empty' })
      expect(log.events[0]).to.deep.include({
        id: eventIdOf(requested.commandId, ORDER, 0n),
        metadata: {
          tenant: 'acme',
          subject: 'clerk',
          client: 'shop',
          authority: 'payments:write',
          $correlationId: requested.correlationId,
          $causationId: requested.commandId,
          traceparent: '00-a-b-01',
          at: '2026-01-01T00:00:00.000Z',
          schemaVersion: 1,
        },
      })
    })

    it('stores the causing event, if there is one', async () => {
      await handle(ledger, orderEntity, ORDER, {
        command: createOrder,
        context: context({ causationId: 'event-7' }),
        load: 'assume_empty',
      })
      expect(log.events[0]?.metadata['$causationId']).to.equal('event-7')
    })
  })

  it('that is refused appends nothing and names the reason', async () => {
    expect(await describeAs('x')).to.deep.equal({ ok: false, rejected: 'resource_not_found' })
    expect(log.events).to.deep.equal([])
  })

  it('that was executed before appends nothing and returns the present stream', async () => {
    await create()
    await describeAs('x')
    expect(await describeAs('x')).to.deep.include({ ok: true, revision: 1n, position: log.head() })
    expect(log.events).to.have.length(2)
  })

  it('that is sent again by a process returns the events as they are stored, and not as it would have sent them', async () => {
    await create()
    const other = ledgerOf()
    await other.aggregates.load(orderEntity, ORDER)
    const send = (of: Ledger, at: string) =>
      handle(of, orderEntity, ORDER, { command: change('x'), context: context({ ...sentAgain, at }) })
    await send(ledger, '2026-01-01T00:00:01.000Z')
    const again = await send(other, '2026-01-01T00:00:09.000Z')
    expect(log.events).to.have.length(2)
    expect(again.ok && again.row?.updated_at).to.equal('2026-01-01T00:00:01.000Z')
    expect(again.ok && again.position).to.equal(log.head())
    expect((await other.aggregates.load(orderEntity, ORDER)).row?.updated_at).to.equal('2026-01-01T00:00:01.000Z')
  })

  it('that expects a new stream reads nothing first', async () => {
    const steps: string[] = []
    await create(ledgerOf(({ at }) => void steps.push(at)))
    expect(steps).to.deep.equal(['append', 'appended'])
  })

  it('that wrongly expects a new stream is decided again on the events that exist', async () => {
    await create()
    expect(await create(ledgerOf())).to.deep.equal({ ok: false, rejected: 'concurrent_modification' })
    expect(log.events).to.have.length(1)
  })

  describe('with If-Match', () => {
    const onlyAt = (revision: bigint) => (row: { revision: bigint } | undefined) => row?.revision === revision
    const cancelAt = (revision: bigint, of = ledger) =>
      handle(of, orderEntity, ORDER, { command: cancel, context: context(), ifMatch: onlyAt(revision) })

    beforeEach(() => create())

    it('is executed when the condition is true', async () => {
      expect(await cancelAt(0n)).to.deep.include({ ok: true, revision: 1n })
    })

    it('returns the present stream when the condition is false, before the state is examined', async () => {
      await handle(ledger, orderEntity, ORDER, { command: cancel, context: context() })
      const answer = await cancelAt(0n)
      expect(answer.ok).to.equal(false)
      expect('stale' in answer && answer.stale).to.deep.include({ revision: 1n })
      expect(log.events).to.have.length(2)
    })

    it('is not tried again when a concurrent append makes the condition false', async () => {
      const other = ledgerOf()
      const answer = await cancelAt(
        0n,
        withConcurrent(() => describeAs('first', other)),
      )
      expect('stale' in answer && answer.stale.row).to.include({ description: 'first', revision: 1n, state: 'open' })
      expect(typesIn(log.events, STREAM)).to.deep.equal(['OrderCreated', 'OrderChanged'])
      expect(world.slept).to.deep.equal([])
    })

    describe('that loses against a version which cannot be read yet', () => {
      /**
       * Another process cancels the order after the first read. That event cannot be read by the next `unreadable`
       * reads.
       */
      const hiding = (unreadable: number): Ledger => {
        const whole = log.open()
        let left = unreadable
        let isCancelled = false
        const store: EventStore = {
          ...whole,
          append: async (...requested) => {
            if (!isCancelled) await handle(ledger, orderEntity, ORDER, { command: cancel, context: context() })
            isCancelled = true
            return whole.append(...requested)
          },
          async *readStream(stream, options) {
            const hidden = isCancelled && left > 0
            if (hidden) left -= 1
            for await (const event of whole.readStream(stream, options))
              if (!hidden || event.revision === 0n) yield event
          },
        }
        return createLedger(store, world)
      }

      it('waits until it can be read, and returns it', async () => {
        const answer = await cancelAt(0n, hiding(3))
        expect('stale' in answer && answer.stale).to.deep.include({ revision: 1n })
        expect(world.slept).to.have.length(3)
      })

      it('is unavailable without effect when it cannot be read in time', async () => {
        const failure = await rejectionOf(cancelAt(0n, hiding(1_000)))
        expect(failure).to.be.instanceOf(Unavailable).and.to.include({ effect: 'none' })
      })
    })
  })

  describe('that is concurrent', () => {
    beforeEach(() => create())

    it('with another process is decided again on the newer state', async () => {
      const other = ledgerOf()
      const mine = withConcurrent(() => handle(other, orderEntity, ORDER, { command: cancel, context: context() }))
      expect(await describeAs('late', mine)).to.deep.equal({
        ok: false,
        rejected: 'order_state_conflict',
        params: { state: 'cancelled' },
      })
    })

    it('with one change after another succeeds, and may pause twice as long after each', async () => {
      const other = ledgerOf()
      let n = 0
      const mine = withConcurrent(() => describeAs(`other ${(n += 1)}`, other), 5)
      expect(await describeAs('mine', mine)).to.deep.include({ ok: true, revision: 6n })
      expect(world.slept).to.have.length(5)
      for (const [attempt, timeMs] of world.slept.entries()) expect(timeMs).to.be.at.most(5 * 2 ** (attempt + 1))
      expect(await descriptionOf()).to.equal('mine')
    })

    it('is not refused for a state that this process has cached and another has changed', async () => {
      await approveInvoice(ledger)
      const pay = { payment_id: id('pay'), amount: 100n, currency: 'USD', settlement: 'deferred' as const }
      const send = (of: Ledger, command: InvoiceCommand) =>
        handle(of, invoiceEntity, id('inv'), { command, context: context() })
      await send(ledger, { type: 'PayInvoice', ...pay })
      await send(ledgerOf(), { type: 'ReleasePayment', payment_id: pay.payment_id })
      expect(await send(ledger, { type: 'VoidInvoice', reason: 'typo' })).to.deep.include({ ok: true })
    })

    it(`gives up after ${ATTEMPTS} attempts`, async () => {
      const other = ledgerOf()
      let n = 0
      const mine = withConcurrent(() => describeAs(`other ${(n += 1)}`, other), 1_000)
      const failure = await rejectionOf(describeAs('mine', mine))
      expect(failure).to.be.instanceOf(Contended).and.to.include({ effect: 'none' })
      expect(n).to.equal(ATTEMPTS)
      expect(Math.max(...world.slept)).to.be.at.most(200)
    })

    it('with others of its process is executed after them, and never conflicts', async () => {
      const texts = Array.from({ length: 50 }, (_, n) => `text ${n}`)
      const answers = await Promise.all(texts.map(text => describeAs(text)))
      expect(answers.map(answer => answer.ok && answer.revision)).to.deep.equal(texts.map((_, n) => BigInt(n + 1)))
      expect(world.slept).to.deep.equal([])
    })

    it('with others of ten processes has its own revision', async () => {
      const ledgers = Array.from({ length: 10 }, () => ledgerOf(() => new Promise(resolve => setImmediate(resolve))))
      const answers = await Promise.all(ledgers.map((of, n) => describeAs(`text ${n}`, of)))
      const revisions = answers.map(answer => (answer.ok ? answer.revision : undefined))
      expect(new Set(revisions)).to.deep.equal(new Set(ledgers.map((_, n) => BigInt(n + 1))))
    })
  })

  describe('whose store does not respond', () => {
    const failing = (at: string): Ledger => {
      let failed = false
      return ledgerOf(step => {
        if (failed || step.at !== at) return
        failed = true
        throw new Unavailable('event store', { effect: at === 'appended' ? 'unknown' : 'none' })
      })
    }

    it('reports no effect when nothing was appended', async () => {
      await create()
      expect(await rejectionOf(describeAs('x', failing('append')))).to.include({ effect: 'none' })
      expect(log.events).to.have.length(1)
    })

    it('reports an unknown effect after an append, and the next command finds the event', async () => {
      await create()
      const mine = failing('appended')
      expect(await rejectionOf(describeAs('x', mine))).to.include({ effect: 'unknown' })
      expect(await describeAs('x', mine)).to.deep.include({ ok: true, revision: 1n })
      expect(log.events).to.have.length(2)
    })

    it('has one effect when the same command is sent again', async () => {
      const requested = context()
      const send = (of: Ledger) =>
        handle(of, orderEntity, ORDER, { command: createOrder, context: requested, load: 'assume_empty' })
      expect(await rejectionOf(send(failing('appended')))).to.be.instanceOf(Unavailable)
      expect(await send(ledgerOf())).to.deep.include({ ok: true, revision: 0n, position: log.head() })
      expect(log.events).to.have.length(1)
    })

    it('does not block the commands that wait for it', async () => {
      await create()
      const mine = failing('append')
      const [first, second] = await Promise.allSettled([describeAs('a', mine), describeAs('b', mine)])
      expect([first.status, second.status]).to.deep.equal(['rejected', 'fulfilled'])
      expect(await descriptionOf()).to.equal('b')
    })
  })
})
