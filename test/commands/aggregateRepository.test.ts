import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'chai'
import { invoiceEntity, orderEntity } from '../../src/commands/entities.ts'
import { createLedger, handle } from '../../src/commands/commandHandler.ts'
import {
  createAggregateRepository,
  heapBytesOf,
  type AggregateRepository,
} from '../../src/commands/aggregateRepository.ts'
import { newEventOf } from '../../src/lib/storedEvents.ts'
import { type JsonObject, type StoredEvent, Unavailable } from '../../src/ports.ts'
import type { InvoiceEvent } from '../../streams/invoice/index.ts'
import type { OrderEvent } from '../../streams/order/index.ts'
import { recordedAs } from '../projections/histories.ts'
import { applied, id, invoiceApproved, invoiceRaised, orderCreated, payInvoice } from '../streams/samples.ts'
import { expectLinearCost } from '../support/linearCost.ts'
import { createMemoryLog, type MemoryLog } from '../support/memoryStore.ts'
import { createVirtualWorld } from '../support/virtualWorld.ts'
import { context } from './fixtures.ts'

const BATCH = 500
const INVOICE = id('inv')
const COST_PER_EVENT_RATIO_MAX = 6

/** Writes the history of an invoice that was paid by `count` payments. */
const paidInParts = async (log: MemoryLog, count: number, of = INVOICE): Promise<void> => {
  const parts = Array.from({ length: count }, (_, n) => applied(n + 1, 1n))
  const recorded = recordedAs<InvoiceEvent>(of, [invoiceRaised, invoiceApproved, ...parts])
  const events = recorded.map(event => newEventOf(invoiceEntity.aggregate.codec, event))
  const store = log.open()
  for (let at = 0; at < events.length; at += BATCH)
    await store.append(`invoice-${of}`, events.slice(at, at + BATCH), at === 0 ? 'no_stream' : BigInt(at - 1))
}

const LINES = 200
/** An order near the largest that a body can hold. */
const largeOrder = async (log: MemoryLog, n: number): Promise<void> => {
  const lines = Array.from({ length: LINES }, (_, line) => ({
    sku: `sku-${n}-${line}`,
    description: `${line}`.padEnd(200, '漢'),
    quantity: 1,
    unit_amount: 100n,
  }))
  const [event] = recordedAs<OrderEvent>(id('ord', n), [{ ...orderCreated, data: { ...orderCreated.data, lines } }])
  if (event) await log.open().append(`order-${event.id}`, [newEventOf(orderEntity.aggregate.codec, event)], 'no_stream')
}

/** Each read creates new strings, as a read from a real store does. */
async function* parsedAgain(events: AsyncIterable<StoredEvent>): AsyncGenerator<StoredEvent> {
  for await (const event of events) yield { ...event, data: JSON.parse(JSON.stringify(event.data)) as JsonObject }
}

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void
const heapInUse = (): number => {
  collectGarbage()
  return process.memoryUsage().heapUsed
}

const paidOf = async (aggregates: AggregateRepository): Promise<bigint> => {
  const { state } = await aggregates.load(invoiceEntity, INVOICE)
  return state.status === 'none' ? 0n : state.paid
}

describe('the aggregate repository', () => {
  it('reads a long stream that is not cached at the same cost per event as a short one', async () => {
    const sizes = { short: 1_000, long: 20_000 }
    const log = createMemoryLog()
    for (const count of Object.values(sizes)) await paidInParts(log, count, id('inv', count))
    const loading = (count: number) => () => createAggregateRepository(log.open()).load(invoiceEntity, id('inv', count))
    await expectLinearCost(loading, sizes, COST_PER_EVENT_RATIO_MAX)
  })

  it('does not change a cached state when events are folded onto it and then discarded', async () => {
    const log = createMemoryLog()
    await paidInParts(log, 100)
    const aggregates = createAggregateRepository(log.open())
    const before = await aggregates.load(invoiceEntity, INVOICE)
    const [more] = recordedAs<InvoiceEvent>(INVOICE, [applied(200, 1n)])
    const after = aggregates.advance(invoiceEntity, before, more ? [{ ...more, revision: 102n }] : [])
    expect(before.state).to.deep.include({ paid: 100n })
    expect(after.state).to.deep.include({ paid: 101n })
    if (before.state.status === 'none' || after.state.status === 'none') throw new Error('The invoice was not raised.')
    expect([before.state.payments.has(id('pay', 200)), before.state.payments.size]).to.deep.equal([false, 100])
    expect([after.state.payments.has(id('pay', 200)), after.state.payments.size]).to.deep.equal([true, 101])
  })

  it('does not cache a decision whose append failed', async () => {
    const log = createMemoryLog()
    await paidInParts(log, 10)
    let isDown = false
    const store = log.open(({ at }) => {
      if (isDown && at === 'append') throw new Unavailable('event store', { effect: 'none', cause: new Error('down') })
    })
    const ledger = createLedger(store, createVirtualWorld())
    await ledger.aggregates.load(invoiceEntity, INVOICE)
    isDown = true
    const request = { command: payInvoice(11, 1n), context: context() }
    const error = await handle(ledger, invoiceEntity, INVOICE, request).catch((failure: unknown) => failure)
    expect(error).to.be.instanceOf(Unavailable)
    isDown = false
    expect(await paidOf(ledger.aggregates)).to.equal(10n)
    expect(await handle(ledger, invoiceEntity, INVOICE, request)).to.deep.include({ ok: true, revision: 12n })
    expect(await paidOf(ledger.aggregates)).to.equal(11n)
  })

  describe('caches streams by their size,', () => {
    const BUDGET_BYTES = 4 * 1024 * 1024
    const ORDERS = 120
    let log: MemoryLog

    beforeEach(async () => {
      log = createMemoryLog()
      for (let n = 1; n <= ORDERS; n += 1) await largeOrder(log, n)
    })

    const keptOf = (aggregates: AggregateRepository): number[] =>
      Array.from({ length: ORDERS }, (_, n) => n + 1).filter(n => aggregates.cached(orderEntity, id('ord', n)))

    it('and keeps the most recently used ones within the budget', async () => {
      const aggregates = createAggregateRepository(log.open(), BUDGET_BYTES)
      let bytes = 0
      for (let n = 1; n <= ORDERS; n += 1) bytes += heapBytesOf(await aggregates.load(orderEntity, id('ord', n)))
      const kept = keptOf(aggregates)
      expect(bytes).to.be.above(3 * BUDGET_BYTES)
      expect(kept.length * (bytes / ORDERS)).to.be.within(BUDGET_BYTES / 2, BUDGET_BYTES)
      expect(kept).to.deep.equal(Array.from({ length: kept.length }, (_, n) => ORDERS - kept.length + n + 1))
    })

    it('and reads one that alone exceeds the budget from its beginning each time', async () => {
      const aggregates = createAggregateRepository(log.open(), 1_000)
      for (let times = 0; times < 2; times += 1)
        expect((await aggregates.load(orderEntity, id('ord'))).row).to.include({ id: id('ord'), revision: 0n })
      expect(keptOf(aggregates)).to.deep.equal([])
    })

    it('which is estimated at no less than the heap that they use', async () => {
      const store = { ...log.open(), readStream: (stream: string) => parsedAgain(log.open().readStream(stream)) }
      // The first read is not measured, because V8 allocates object shapes and compiled code during it.
      await createAggregateRepository(store).load(orderEntity, id('ord'))
      const before = heapInUse()
      const held = await Promise.all(
        Array.from({ length: ORDERS }, (_, n) => createAggregateRepository(store).load(orderEntity, id('ord', n + 1))),
      )
      const taken = heapInUse() - before
      const estimated = held.reduce((sum, loaded) => sum + heapBytesOf(loaded), 0)
      expect(estimated).to.be.within(taken, 6 * taken)
    })
  })
})
