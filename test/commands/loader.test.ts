import { expect } from 'chai'
import { invoiceEntity } from '../../src/commands/entities.ts'
import { createLedger, handle } from '../../src/commands/handle.ts'
import { createLoader, type Loader } from '../../src/commands/loader.ts'
import { newEventOf } from '../../src/commands/recorded.ts'
import { Unavailable } from '../../src/ports.ts'
import type { InvoiceEvent } from '../../streams/invoice/index.ts'
import { recordedAs } from '../projections/histories.ts'
import { applied, id, invoiceApproved, invoiceRaised, payInvoice } from '../streams/samples.ts'
import { growthOfCost } from '../support/cost.ts'
import { createMemoryLog, type MemoryLog } from '../support/memoryStore.ts'
import { createVirtualWorld } from '../support/virtualWorld.ts'
import { context } from './kit.ts'

const BATCH = 500
const INVOICE = id('inv')
const COST_PER_EVENT_RATIO_MAX = 3

/** An invoice that was paid in so many parts, as the store has it. */
const paidInParts = async (log: MemoryLog, count: number, of = INVOICE): Promise<void> => {
  const parts = Array.from({ length: count }, (_, n) => applied(n + 1, 1n))
  const recorded = recordedAs<InvoiceEvent>(of, [invoiceRaised, invoiceApproved, ...parts])
  const events = recorded.map(event => newEventOf(invoiceEntity.aggregate.codec, event))
  const store = log.open()
  for (let at = 0; at < events.length; at += BATCH)
    await store.append(`invoice-${of}`, events.slice(at, at + BATCH), at === 0 ? 'no_stream' : BigInt(at - 1))
}

const paidOf = async (loader: Loader): Promise<bigint> => {
  const { state } = await loader.load(invoiceEntity, INVOICE)
  return state.status === 'none' ? 0n : state.paid
}

describe('the loader', () => {
  it('reads a long stream, cold, at the same cost per event as a short one', async () => {
    const sizes = { short: 2_500, long: 20_000 }
    const log = createMemoryLog()
    for (const count of Object.values(sizes)) await paidInParts(log, count, id('inv', count))
    const ratio = await growthOfCost(
      count => () => createLoader(log.open()).load(invoiceEntity, id('inv', count)),
      sizes,
    )
    expect(ratio).to.be.below(COST_PER_EVENT_RATIO_MAX)
  })

  it('keeps a state as it was, whatever is folded onto it and then not kept', async () => {
    const log = createMemoryLog()
    await paidInParts(log, 100)
    const loader = createLoader(log.open())
    const before = await loader.load(invoiceEntity, INVOICE)
    const [more] = recordedAs<InvoiceEvent>(INVOICE, [applied(200, 1n)])
    const after = loader.advance(invoiceEntity, before, more ? [{ ...more, revision: 102n }] : [])
    expect(before.state).to.deep.include({ paid: 100n })
    expect(after.state).to.deep.include({ paid: 101n })
    if (before.state.status === 'none' || after.state.status === 'none') throw new Error('It was raised.')
    expect([before.state.payments.has(id('pay', 200)), before.state.payments.size]).to.deep.equal([false, 100])
    expect([after.state.payments.has(id('pay', 200)), after.state.payments.size]).to.deep.equal([true, 101])
  })

  it('knows nothing of a decision whose append failed', async () => {
    const log = createMemoryLog()
    await paidInParts(log, 10)
    let isDown = false
    const store = log.open(({ at }) => {
      if (isDown && at === 'append') throw new Unavailable('event store', 'none', new Error('down'))
    })
    const ledger = createLedger(store, createVirtualWorld())
    await ledger.loader.load(invoiceEntity, INVOICE)
    isDown = true
    const request = { command: payInvoice(11, 1n), context: context() }
    const error = await handle(ledger, invoiceEntity, INVOICE, request).catch((failure: unknown) => failure)
    expect(error).to.be.instanceOf(Unavailable)
    isDown = false
    expect(await paidOf(ledger.loader)).to.equal(10n)
    expect(await handle(ledger, invoiceEntity, INVOICE, request)).to.deep.include({ ok: true, revision: 12n })
    expect(await paidOf(ledger.loader)).to.equal(11n)
  })
})
