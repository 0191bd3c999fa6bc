import { expect } from 'chai'
import { invoiceEntity, orderEntity } from '../../src/commands/entities.ts'
import { createLedger, handle, type Ledger } from '../../src/commands/commandHandler.ts'
import { newIdempotencyRecord, idOfKey } from '../../src/commands/idempotency/record.ts'
import { recordKey } from '../../src/commands/idempotency/conflicts.ts'
import { outcomeOfKey } from '../../src/commands/idempotency/keyStatus.ts'
import { type NewInvoice, raise, raiseFromTerms } from '../../src/commands/invoices.ts'
import type { EventStore } from '../../src/ports.ts'
import { orderEvents } from '../../streams/order/events.ts'
import type { OrderCommand } from '../../streams/order/index.ts'
import { createOrder, id, invoiceOrder } from '../streams/samples.ts'
import { createMemoryLog, type MemoryLog } from '../support/memoryStore.ts'
import { createVirtualWorld } from '../support/virtualWorld.ts'
import { context, typesIn } from './fixtures.ts'
import { type Chances, createScheduler } from './scheduler.ts'
import { breadth } from '../support/breadth.ts'

const SEEDS = breadth(50, 200)
const secret = Buffer.alloc(32, 1)
const scope = { tenant: 'acme', subject: 'clerk', client: 'shop', operation: 'raise_invoice' }

const newInvoice = (key: string, order: number): NewInvoice => ({
  id: idOfKey('inv', { scope, key, secret }),
  order_id: id('ord', order),
  due_date: '2026-03-01',
  metadata: {},
  idempotencyRecord: newIdempotencyRecord(
    { scope, key, secret },
    { order_id: id('ord', order), metadata: {} },
    '2026-02-01T00:00:00.000Z',
  ),
})

const INVOICE = newInvoice('k', 1).id
const orderTypes = (log: MemoryLog, order: number) => typesIn(log.events, `order-${id('ord', order)}`)
const raisedFrom = (log: MemoryLog): unknown[] =>
  log.events.filter(({ stream }) => stream === `invoice-${INVOICE}`).map(({ data }) => data['order_id'])

const twoOrders = async (): Promise<MemoryLog> => {
  const log = createMemoryLog()
  const ledger = createLedger(log.open(), createVirtualWorld())
  for (const order of [1, 2])
    await handle(ledger, orderEntity, id('ord', order), {
      command: createOrder,
      context: context(),
      load: 'assume_empty',
    })
  return log
}

/** Recovery after a crash as fulfilment does it: raises every invoice of an OrderInvoiced event. */
const recover = async (log: MemoryLog): Promise<Ledger> => {
  const ledger = createLedger(log.open(), createVirtualWorld())
  for (const { type, stream, data } of [...log.events])
    if (type === 'OrderInvoiced')
      await raiseFromTerms(ledger, `ord_${stream.slice(-26)}`, orderEvents.OrderInvoiced.parse(data), context())
  return ledger
}

/** Raises the invoices in the order of the seed, with the faults of the chances. */
const run = async (seed: number, invoices: readonly NewInvoice[], chances: Chances) => {
  const log = await twoOrders()
  const scheduler = createScheduler(log, seed, chances)
  const answers: (readonly [NewInvoice, Awaited<ReturnType<typeof raise>>])[] = []
  const calls = invoices.map(async invoice => {
    answers.push([invoice, await raise(scheduler.process(), invoice, context())])
  })
  await scheduler.run(calls)
  await recover(log)
  return { log, answers }
}

/** Expects the invoice to be raised from exactly one order, and every response to name that order. */
const expectOneInvoice = ({ log, answers }: Awaited<ReturnType<typeof run>>): void => {
  const [order, ...others] = raisedFrom(log)
  expect(others, 'raised once').to.deep.equal([])
  for (const number of [1, 2])
    expect(orderTypes(log, number)).to.deep.equal(
      id('ord', number) === order ? ['OrderCreated', 'OrderInvoiced'] : ['OrderCreated'],
    )
  for (const [requested, answer] of answers)
    if (answer.kind === 'created' || answer.kind === 'replayed') {
      expect(requested.order_id).to.equal(order)
      expect(answer.row.order_id).to.equal(order)
    } else expect(answer).to.deep.equal({ kind: 'key_reused', pointers: ['/order_id'] })
}

describe('invoices that are raised under one key', () => {
  const scenarios = {
    'from two orders': [newInvoice('k', 1), newInvoice('k', 2)],
    'twice from each of two orders': [1, 2, 1, 2].map(order => newInvoice('k', order)),
    'twice from one order': [newInvoice('k', 1), newInvoice('k', 1)],
  }
  for (const [name, invoices] of Object.entries(scenarios))
    for (const [how, chances] of Object.entries({
      'in any order of steps': { crash: 0, lostAck: 0 },
      'with acknowledgements lost': { crash: 0, lostAck: 0.2 },
      'with processes that crash at any step': { crash: 0.05, lostAck: 0.1 },
    }))
      it(`give one invoice, and leave no other order invoiced: ${name}, ${how}`, async () => {
        let [raised, answered] = [0, 0]
        for (let seed = 1; seed <= SEEDS; seed += 1) {
          const outcome = await run(seed, invoices, chances)
          if (raisedFrom(outcome.log).length > 0) raised += 1
          answered += outcome.answers.length
          try {
            expectOneInvoice(outcome)
          } catch (error) {
            throw new Error(`seed ${seed}`, { cause: error })
          }
        }
        const calls = SEEDS * invoices.length
        const hasFaults = chances.crash > 0 || chances.lostAck > 0
        expect(raised, 'seeds with an invoice').to.be.greaterThan(SEEDS / 2)
        expect(answered, 'calls with a response').to.be.within(hasFaults ? calls / 4 : calls, calls)
      })

  it('have the same response for a retry in a process with empty caches', async () => {
    const log = await twoOrders()
    const first = await raise(createLedger(log.open(), createVirtualWorld()), newInvoice('k', 1), context())
    const again = await raise(createLedger(log.open(), createVirtualWorld()), newInvoice('k', 1), context())
    expect(again).to.deep.equal({ ...first, kind: 'replayed' })
  })

  it('do not bind the key when the order refuses at once', async () => {
    const log = await twoOrders()
    const ledger = createLedger(log.open(), createVirtualWorld())
    const cancel = { type: 'CancelOrder' as const, reason: null }
    await handle(ledger, orderEntity, id('ord', 1), { command: cancel, context: context() })
    const refused = await raise(ledger, newInvoice('k', 1), context())
    expect(refused.kind === 'refused' && refused.rejection.rejected).to.equal('order_state_conflict')
    expect((await raise(ledger, newInvoice('k', 2), context())).kind).to.equal('created')
  })

  it('have the response that the order decided after the key was bound, though the order is open again', async () => {
    const log = await twoOrders()
    const ledger = createLedger(log.open(), createVirtualWorld())
    const by = (command: OrderCommand) => ({ command, context: context() })
    const bound = newInvoice('k', 1)
    // Another process invoices the order between the binding of the key and the decision of the order.
    const interrupted: Ledger = {
      ...ledger,
      store: {
        ...ledger.store,
        append: async (stream, ...rest) => {
          if (stream.startsWith('order-') && log.events.every(({ type }) => type !== 'OrderInvoiced'))
            await handle(createLedger(log.open(), createVirtualWorld()), orderEntity, id('ord', 1), by(invoiceOrder(7)))
          return ledger.store.append(stream, ...rest)
        },
      },
    }
    const first = await raise(interrupted, bound, { ...context(), correlationId: 'first-request' })
    const reopen = { type: 'ReopenOrder' as const, invoice_id: id('inv', 7) }
    await handle(ledger, orderEntity, id('ord', 1), by(reopen))
    const again = await raise(ledger, bound, { ...context(), correlationId: 'second-request' })
    const refused = {
      kind: 'refused',
      rejection: { rejected: 'order_has_invoices' },
      firstCorrelationId: 'first-request',
    }
    expect(first).to.deep.equal(refused)
    expect(again).to.deep.equal({ ...refused, replayed: true })
    const { status, ...outcome } = await outcomeOfKey(ledger, 'raise_invoice', { scope, key: 'k', secret })
    expect([status, 'href' in outcome && outcome.href]).to.deep.equal(['rejected', `/orders/${id('ord', 1)}`])
  })

  it('have the refusal of the retry of an interrupted request again, though the order is open again', async () => {
    const log = await twoOrders()
    const ledger = createLedger(log.open(), createVirtualWorld())
    const bound = newInvoice('k', 1)
    const key = {
      idFromKey: bound.id,
      resourceId: bound.id,
      idempotencyRecord: bound.idempotencyRecord ?? expect.fail('no idempotency record'),
    }
    await recordKey(ledger, key, context())
    const by = (command: OrderCommand) => ({ command, context: context() })
    await handle(ledger, orderEntity, id('ord', 1), by(invoiceOrder(7)))
    const retried = await raise(ledger, bound, context())
    await handle(ledger, orderEntity, id('ord', 1), by({ type: 'ReopenOrder', invoice_id: id('inv', 7) }))
    const again = await raise(ledger, bound, context())
    for (const { kind, ...answer } of [retried, again])
      expect([kind, 'rejection' in answer && answer.rejection.rejected]).to.deep.equal([
        'refused',
        'order_has_invoices',
      ])
    expect(orderTypes(log, 1)).to.deep.equal(['OrderCreated', 'OrderInvoiced', 'OrderInvoiceRefused', 'OrderReopened'])
  })

  const voidedMeanwhile = {
    'with a key, and the order is open again': [newInvoice('k', 1), undefined],
    'with a key, and the order has another invoice': [newInvoice('k', 1), 7],
    'without a key': [{ ...newInvoice('k', 1), idempotencyRecord: null }, undefined],
  } as const
  for (const [name, [invoice, next]] of Object.entries(voidedMeanwhile))
    it(`have the first response when the invoice was voided between read and decision: ${name}`, async () => {
      const log = await twoOrders()
      const other = createLedger(log.open(), createVirtualWorld())
      const order = id('ord', 1)
      const by = (command: OrderCommand) => handle(other, orderEntity, order, { command, context: context() })
      let isOver = false
      const meanwhile = async (): Promise<void> => {
        isOver = true
        await raise(other, invoice, context())
        const command = { type: 'VoidInvoice' as const, reason: null }
        await handle(other, invoiceEntity, INVOICE, { command, context: context() })
        await by({ type: 'ReopenOrder', invoice_id: INVOICE })
        if (next !== undefined) await by(invoiceOrder(next))
      }
      const store = log.open()
      const late: EventStore = {
        ...store,
        async *readStream(stream, options) {
          if (!isOver && stream === `order-${order}`) await meanwhile()
          yield* store.readStream(stream, options)
        },
      }
      const raised = await raise(createLedger(late, createVirtualWorld()), invoice, context())
      expect('row' in raised && [raised.row.id, raised.row.revision, raised.row.state]).to.deep.equal([
        INVOICE,
        0n,
        'draft',
      ])
      const ended = next === undefined ? [] : ['OrderInvoiced']
      expect(orderTypes(log, 1)).to.deep.equal(['OrderCreated', 'OrderInvoiced', 'OrderReopened', ...ended])
    })
})
