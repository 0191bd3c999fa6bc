import { expect } from 'chai'
import { REQUEST_GRACE_MS } from '../../src/processes/recoveryTimes.ts'
import { invoiceEntity, orderEntity } from '../../src/commands/entities.ts'
import { handle } from '../../src/commands/commandHandler.ts'
import { pay } from '../../src/commands/payments.ts'
import { fulfilment } from '../../src/processes/fulfilment.ts'
import { feedOf } from '../../src/processes/processManager.ts'
import { context, newPayment, typesIn } from '../commands/fixtures.ts'
import { createOrder, id, invoiceOrder } from '../streams/samples.ts'
import { type DrivenRun, useProcessHarness, noFailure } from './harness.ts'

const GRACE_MS = REQUEST_GRACE_MS
const TICK_MS = 250

describe('the fulfilment process', () => {
  const harness = useProcessHarness()
  let process: DrivenRun

  const orderTypes = () => typesIn(harness.log.events, `order-${id('ord')}`)
  const invoiceTypes = (n = 1) => typesIn(harness.log.events, `invoice-${id('inv', n)}`)
  const onOrder = (command: Parameters<typeof orderEntity.aggregate.decider.decide>[0]) =>
    handle(harness.ledger, orderEntity, id('ord'), { command, context: context() })
  const onInvoice = (command: Parameters<typeof invoiceEntity.aggregate.decider.decide>[0]) =>
    handle(harness.ledger, invoiceEntity, id('inv'), { command, context: context() })
  const start = (): Promise<DrivenRun> => {
    const { database, openLedger } = harness
    const ledger = openLedger()
    return harness.start(feedOf(fulfilment(ledger), { database, ledger, onFailure: noFailure }))
  }
  /** Processes new events, and lets the process finish due tasks. */
  const settle = async (timeMs = TICK_MS): Promise<void> => {
    await process.processNew()
    await harness.world.pass(timeMs)
  }

  beforeEach(async () => {
    await onOrder(createOrder)
    await onOrder(invoiceOrder())
    process = await start()
  })

  it('raises the invoice of an invoiced order whose request ended early', async () => {
    await settle(GRACE_MS - 1)
    expect(invoiceTypes()).to.deep.equal([])
    await harness.world.pass(1)
    expect(invoiceTypes()).to.deep.equal(['InvoiceRaised'])
    const { row } = await harness.ledger.aggregates.load(invoiceEntity, id('inv'))
    expect(row).to.include({ order_id: id('ord'), amount_due: 2500n, due_date: '2026-03-01', created_by: 'clerk' })
  })

  it('raises it once, also when the request does so too', async () => {
    await process.processNew()
    await onInvoice({
      type: 'RaiseInvoice',
      order_id: id('ord'),
      currency: 'USD',
      amount_due: 2500n,
      due_date: '2026-03-01',
      metadata: {},
      claim: null,
    })
    await harness.world.pass(GRACE_MS)
    expect(invoiceTypes()).to.deep.equal(['InvoiceRaised'])
  })

  it('keeps its checkpoint before the order whose invoice is not raised yet', async () => {
    await process.processNew()
    const invoicedAt = harness.log.events[1]?.position ?? 0n
    expect((await harness.checkpoint('fulfilment')) < invoicedAt).to.equal(true)
    await harness.world.pass(GRACE_MS)
    await process.processNew()
    expect(await harness.checkpoint('fulfilment')).to.equal(harness.log.head())
  })

  describe('when the invoice is raised', () => {
    beforeEach(async () => {
      await settle(GRACE_MS)
    })

    it('completes the order of an invoice that is paid', async () => {
      await onInvoice({ type: 'ApproveInvoice', approved_by: 'boss' })
      await pay(harness.ledger, newPayment('k', { amount: 2500n }), context())
      await settle()
      expect(orderTypes()).to.deep.equal(['OrderCreated', 'OrderInvoiced', 'OrderCompleted'])
    })

    it('does not complete the order of an invoice that is paid in part', async () => {
      await onInvoice({ type: 'ApproveInvoice', approved_by: 'boss' })
      await pay(harness.ledger, newPayment('k', { amount: 2499n }), context())
      await settle(2 * GRACE_MS)
      expect(orderTypes()).to.deep.equal(['OrderCreated', 'OrderInvoiced'])
    })

    it('reopens the order of an invoice that is voided, once', async () => {
      await onInvoice({ type: 'VoidInvoice', reason: null })
      await settle()
      await settle()
      expect(orderTypes()).to.deep.equal(['OrderCreated', 'OrderInvoiced', 'OrderReopened'])
    })

    it('ignores an order that has another invoice by then, when it reads the log again', async () => {
      await onInvoice({ type: 'VoidInvoice', reason: null })
      await settle()
      await onOrder(invoiceOrder(2))
      await harness.database.sql('update checkpoints set position = -1')
      const again = await start()
      await again.processNew()
      await harness.world.pass(TICK_MS)
      expect(orderTypes()).to.deep.equal(['OrderCreated', 'OrderInvoiced', 'OrderReopened', 'OrderInvoiced'])
    })
  })
})
