import { order, type OrderEvent } from '../../streams/order/index.ts'
import { scenario } from '../support/scenario.ts'
import { claim, createOrder, id, invoiceOrder, lines, orderCreated, orderInvoiced } from './samples.ts'

const { given } = scenario(order.decider)

const reopened: OrderEvent = { type: 'OrderReopened', data: { invoice_id: id('inv') } }
const completed: OrderEvent = { type: 'OrderCompleted', data: { invoice_id: id('inv') } }
const cancelled: OrderEvent = {
  type: 'OrderCancelled',
  data: { reason: 'too late', currency: 'USD', total_amount: 2500n },
}
const invoiceRefused = (code: 'order_has_invoices' | 'order_state_conflict'): OrderEvent => ({
  type: 'OrderInvoiceRefused',
  data: { invoice_id: id('inv', 2), code },
})
const deleted: OrderEvent = { type: 'OrderDeleted', data: {} }
const cancel = { type: 'CancelOrder', reason: 'too late' } as const
const remove = { type: 'DeleteOrder' } as const
const reopen = { type: 'ReopenOrder', invoice_id: id('inv') } as const
const complete = { type: 'CompleteOrder', invoice_id: id('inv') } as const

describe('an order', () => {
  describe('is created', () => {
    it('with the total of its lines', () =>
      given().when(createOrder).expectThenRefused('concurrent_modification', orderCreated))
    it('once', () => given(orderCreated).when(createOrder).expectRejected('concurrent_modification'))
  })

  describe('is changed', () => {
    const change = { type: 'ChangeOrder', description: 'for the office', metadata: { shop: 'south' } } as const

    it('in the named members only', () =>
      given(orderCreated)
        .when(change)
        .expectOnce({
          type: 'OrderChanged',
          data: { description: 'for the office', metadata: { shop: 'south' } },
        }))
    it('to no value by a null', () =>
      given(orderCreated)
        .when({ type: 'ChangeOrder', customer_reference: null })
        .expectOnce({ type: 'OrderChanged', data: { customer_reference: null } }))
    it('in its lines, and with them in its total', () =>
      given(orderCreated)
        .when({ type: 'ChangeOrder', lines: [{ ...lines[0], quantity: 3 }] })
        .expectOnce({ type: 'OrderChanged', data: { lines: [{ ...lines[0], quantity: 3 }], total_amount: 1350n } }))
    it('not by values that it has already', () =>
      given(orderCreated)
        .when({ type: 'ChangeOrder', customer_reference: 'C-17', lines, metadata: { shop: 'north' } })
        .expectNothing())
    it('in its metadata by a merge patch: null removes a member, or all of them', async () => {
      const patched = (metadata: Readonly<Record<string, string | null>> | null) =>
        given(orderCreated).when({ type: 'ChangeOrder', metadata })
      const to = (metadata: Readonly<Record<string, string>>) => ({ type: 'OrderChanged', data: { metadata } }) as const
      patched({ desk: '7' }).expectOnce(to({ shop: 'north', desk: '7' }))
      patched({ desk: '7', shop: null }).expectOnce(to({ desk: '7' }))
      patched(null).expectOnce(to({}))
      patched({ desk: null }).expectNothing()
    })
    it('not to more than 50 members of its metadata', () => {
      const names = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`name ${n}`, 'x']))
      given(orderCreated)
        .when({ type: 'ChangeOrder', metadata: names(50) })
        .expectRejected('validation_failed')
      given(orderCreated)
        .when({ type: 'ChangeOrder', metadata: { ...names(50), shop: null } })
        .expectOnce({ type: 'OrderChanged', data: { metadata: names(50) } })
    })
    it('not by an empty patch', () => given(orderCreated).when({ type: 'ChangeOrder' }).expectNothing())
    it('in its description also while it is invoiced', () =>
      given(orderCreated, orderInvoiced())
        .when({ type: 'ChangeOrder', description: 'x' })
        .expectOnce({ type: 'OrderChanged', data: { description: 'x' } }))
    it('not in its lines while it is invoiced', () =>
      given(orderCreated, orderInvoiced())
        .when({ type: 'ChangeOrder', lines: [] })
        .expectRejected('order_state_conflict', { state: 'invoiced' }))
    it('not when it is cancelled', () =>
      given(orderCreated, cancelled).when(change).expectRejected('order_state_conflict', { state: 'cancelled' }))
    it('not when it is deleted, also after it was cancelled', () =>
      given(orderCreated, cancelled, deleted).when(change).expectRejected('resource_not_found'))
    it('not before it exists', () => given().when(change).expectRejected('resource_not_found'))
  })

  describe('is invoiced', () => {
    it('over its total', () => given(orderCreated).when(invoiceOrder()).expectOnce(orderInvoiced()))
    it('over its total after a change of the lines', () =>
      given(orderCreated, { type: 'OrderChanged', data: { lines: [], total_amount: 0n } })
        .when(invoiceOrder())
        .expectOnce({ type: 'OrderInvoiced', data: { ...orderInvoiced().data, amount_due: 0n } }))
    it('by one invoice at a time; under a key the refusal is recorded', () =>
      given(orderCreated, orderInvoiced(1))
        .when({ ...invoiceOrder(2), claim })
        .expectOnce(invoiceRefused('order_has_invoices')))
    it('by one invoice at a time; without a key nothing is recorded', () =>
      given(orderCreated, orderInvoiced(1))
        .when(invoiceOrder(2))
        .expectRejected('order_has_invoices', { invoice_id: id('inv', 1) }))
    it('not by an invoice that was refused, though the order is open again', () =>
      given(orderCreated, orderInvoiced(1), invoiceRefused('order_has_invoices'), reopened)
        .when({ ...invoiceOrder(2), claim })
        .expectNothing())
    it('not by an invoice that was voided, though the order is open again', () =>
      given(orderCreated, orderInvoiced(1), reopened).when(invoiceOrder(1)).expectNothing())
    it('not by an invoice that was voided, though the order has another one', () =>
      given(orderCreated, orderInvoiced(1), reopened, orderInvoiced(2))
        .when({ ...invoiceOrder(1), claim })
        .expectNothing())
    it('by another one after the first was voided', () =>
      given(orderCreated, orderInvoiced(1), reopened).when(invoiceOrder(2)).expectOnce(orderInvoiced(2)))
    it('by its own invoice without an event when it is completed', () =>
      given(orderCreated, orderInvoiced(1), completed).when(invoiceOrder(1)).expectNothing())
    it('by no other one when it is completed', () =>
      given(orderCreated, orderInvoiced(1), completed)
        .when(invoiceOrder(2))
        .expectRejected('order_state_conflict', { state: 'completed' }))
    it('not when it is cancelled', () =>
      given(orderCreated, cancelled)
        .when(invoiceOrder())
        .expectRejected('order_state_conflict', { state: 'cancelled' }))
    it('not when it is deleted', () =>
      given(orderCreated, deleted).when(invoiceOrder()).expectRejected('resource_not_found'))
    it('not before it exists', () => given().when(invoiceOrder()).expectRejected('resource_not_found'))
  })

  describe('is reopened', () => {
    it('when its invoice was voided', () => given(orderCreated, orderInvoiced()).when(reopen).expectOnce(reopened))
    it('not for an invoice that it no longer has', () =>
      given(orderCreated, orderInvoiced(1), reopened, orderInvoiced(2)).when(reopen).expectNothing())
    it('not when it is completed', () => given(orderCreated, orderInvoiced(), completed).when(reopen).expectNothing())
    it('not before it exists', () => given().when(reopen).expectRejected('resource_not_found'))
  })

  describe('is completed', () => {
    it('when its invoice is paid', () => given(orderCreated, orderInvoiced()).when(complete).expectOnce(completed))
    it('not for an invoice that it no longer has', () =>
      given(orderCreated, orderInvoiced(1), reopened, orderInvoiced(2)).when(complete).expectNothing())
    it('not without an invoice', () => given(orderCreated).when(complete).expectNothing())
    it('not before it exists', () => given().when(complete).expectRejected('resource_not_found'))
  })

  describe('is cancelled', () => {
    it('while it is open, once', () =>
      given(orderCreated).when(cancel).expectThenRefused('order_state_conflict', cancelled))
    it('not while it has an invoice', () =>
      given(orderCreated, orderInvoiced())
        .when(cancel)
        .expectRejected('order_has_invoices', { invoice_id: id('inv') }))
    it('not when it is completed', () =>
      given(orderCreated, orderInvoiced(), completed)
        .when(cancel)
        .expectRejected('order_state_conflict', { state: 'completed' }))
    it('not when it is deleted', () => given(orderCreated, deleted).when(cancel).expectRejected('resource_not_found'))
    it('not before it exists', () => given().when(cancel).expectRejected('resource_not_found'))
  })

  describe('is deleted', () => {
    it('while it is open, once', () =>
      given(orderCreated).when(remove).expectThenRefused('resource_not_found', deleted))
    it('when it is cancelled', () =>
      given(orderCreated, cancelled).when(remove).expectThenRefused('resource_not_found', deleted))
    it('after its invoice was voided', () =>
      given(orderCreated, orderInvoiced(), reopened).when(remove).expectThenRefused('resource_not_found', deleted))
    it('not while it has an invoice', () =>
      given(orderCreated, orderInvoiced())
        .when(remove)
        .expectRejected('order_has_invoices', { invoice_id: id('inv') }))
    it('not when it is completed', () =>
      given(orderCreated, orderInvoiced(), completed)
        .when(remove)
        .expectRejected('order_has_invoices', { invoice_id: id('inv') }))
    it('not before it exists', () => given().when(remove).expectRejected('resource_not_found'))
  })
})
