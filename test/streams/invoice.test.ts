import { expect } from 'chai'
import { invoice, type InvoiceEvent, refusalOf, stillDue } from '../../streams/invoice/index.ts'
import { scenario, stateAfter } from '../support/scenario.ts'
import {
  applied,
  id,
  invoiceApproved,
  invoicePaid,
  invoiceRaised,
  invoiceVoided,
  payInvoice,
  raiseInvoice,
  refused,
  released,
  reserved,
} from './samples.ts'

const { given } = scenario(invoice.decider)

const approve = { type: 'ApproveInvoice', approved_by: 'boss' } as const
const voidIt = { type: 'VoidInvoice', reason: 'typo' } as const
const settle = (n: number) => ({ type: 'SettlePayment', payment_id: id('pay', n) }) as const
const release = (n: number) => ({ type: 'ReleasePayment', payment_id: id('pay', n) }) as const
const deferred = { settlement: 'deferred' } as const

const approved: readonly InvoiceEvent[] = [invoiceRaised, invoiceApproved]
const paid: readonly InvoiceEvent[] = [...approved, applied(1, 2500n), invoicePaid(1)]

describe('an invoice', () => {
  describe('is raised', () => {
    it('from the terms of its order', () => given().when(raiseInvoice).expectOnce(invoiceRaised))
    it('once, also when the command is repeated later', () =>
      given(...paid)
        .when(raiseInvoice)
        .expectNothing())
  })

  describe('is approved', () => {
    it('while it is a draft, once', () =>
      given(invoiceRaised).when(approve).expectThenRefused('invoice_state_conflict', invoiceApproved))
    it('not when it is voided', () =>
      given(invoiceRaised, invoiceVoided).when(approve).expectRejected('invoice_state_conflict', { state: 'voided' }))
    it('not when it is paid', () =>
      given(...paid)
        .when(approve)
        .expectRejected('invoice_state_conflict', { state: 'paid' }))
    it('not before it exists', () => given().when(approve).expectRejected('resource_not_found'))
  })

  describe('is voided', () => {
    it('while it is a draft, once', () =>
      given(invoiceRaised).when(voidIt).expectThenRefused('invoice_state_conflict', invoiceVoided))
    it('when it is approved', () =>
      given(...approved)
        .when(voidIt)
        .expectThenRefused('invoice_state_conflict', invoiceVoided))
    it('after its last reservation was released', () =>
      given(...approved, reserved(1, 100n), released(1, 100n))
        .when(voidIt)
        .expectThenRefused('invoice_state_conflict', invoiceVoided))
    it('not while a part of it is reserved', () =>
      given(...approved, reserved(1, 100n))
        .when(voidIt)
        .expectRejected('invoice_state_conflict', { state: 'approved', amount_pending: 100n }))
    it('not when a part of it is paid', () =>
      given(...approved, applied(1, 100n))
        .when(voidIt)
        .expectRejected('invoice_state_conflict', { state: 'partially_paid' }))
    it('not when it is paid', () =>
      given(...paid)
        .when(voidIt)
        .expectRejected('invoice_state_conflict', { state: 'paid' }))
    it('not before it exists', () => given().when(voidIt).expectRejected('resource_not_found'))
  })

  describe('is paid at once', () => {
    it('in part', () =>
      given(...approved)
        .when(payInvoice(1, 1000n))
        .expectOnce(applied(1, 1000n)))
    it('in full, by one payment', () =>
      given(...approved)
        .when(payInvoice(1, 2500n))
        .expectOnce(applied(1, 2500n), invoicePaid(1)))
    it('in full, by the last part', () =>
      given(...approved, applied(1, 2499n))
        .when(payInvoice(2, 1n))
        .expectOnce(applied(2, 1n), invoicePaid(2)))
    it('in part, not in full, while the rest is reserved for another payment', () =>
      given(...approved, reserved(1, 500n))
        .when(payInvoice(2, 2000n))
        .expectOnce(applied(2, 2000n)))
  })

  describe('reserves a deferred payment', () => {
    it('until it settles', () =>
      given(...approved)
        .when(payInvoice(1, 2500n, deferred))
        .expectOnce(reserved(1, 2500n)))
    it('and counts it as paid at settlement', () =>
      given(...approved, reserved(1, 1000n))
        .when(settle(1))
        .expectOnce(applied(1, 1000n)))
    it('and is paid when the last one settles', () =>
      given(...approved, reserved(1, 2500n))
        .when(settle(1))
        .expectOnce(applied(1, 2500n), invoicePaid(1)))
    it('and releases the amount when it fails', () =>
      given(...approved, reserved(1, 1000n))
        .when(release(1))
        .expectOnce(released(1, 1000n)))
    it('and has the released amount due again', () =>
      given(...approved, reserved(1, 2500n), released(1, 2500n))
        .when(payInvoice(2, 2500n))
        .expectOnce(applied(2, 2500n), invoicePaid(2)))
    it('and does not settle one that was released', () =>
      given(...approved, reserved(1, 1000n), released(1, 1000n))
        .when(settle(1))
        .expectRejected('payment_state_conflict'))
    it('and does not settle one that it refused', () =>
      given(...approved, refused(1, 9000n, 'payment_exceeds_due'))
        .when(settle(1))
        .expectRejected('payment_state_conflict'))
    it('and does not settle an unknown one', () =>
      given(...approved)
        .when(settle(1))
        .expectRejected('payment_state_conflict'))
    it('and does not release one that is applied', () =>
      given(...approved, applied(1, 1000n))
        .when(release(1))
        .expectRejected('payment_state_conflict'))
    it('and releases nothing of one that is unknown or was refused', () => {
      given(...approved)
        .when(release(1))
        .expectNothing()
      given(...approved, refused(1, 9000n, 'payment_exceeds_due'))
        .when(release(1))
        .expectNothing()
    })
    it('only if it exists', () => {
      given().when(settle(1)).expectRejected('resource_not_found')
      given().when(release(1)).expectRejected('resource_not_found')
    })
  })

  describe('refuses a payment, and records that,', () => {
    it('while it is a draft', () =>
      given(invoiceRaised)
        .when(payInvoice(1, 100n))
        .expectOnce(refused(1, 100n, 'payment_not_allowed')))
    it('when it is voided, for any amount', () =>
      given(invoiceRaised, invoiceVoided)
        .when(payInvoice(1, 9000n))
        .expectOnce(refused(1, 9000n, 'payment_not_allowed')))
    it('in another currency, for any amount', () =>
      given(...approved)
        .when(payInvoice(1, 9000n, { currency: 'EUR' }))
        .expectOnce(refused(1, 9000n, 'payment_not_allowed')))
    it('over the due amount', () =>
      given(...approved)
        .when(payInvoice(1, 2501n))
        .expectOnce(refused(1, 2501n, 'payment_exceeds_due')))
    it('over the amount that is neither paid nor reserved', () =>
      given(...approved, applied(1, 1000n), reserved(2, 500n))
        .when(payInvoice(3, 1001n))
        .expectOnce(refused(3, 1001n, 'payment_exceeds_due')))
    it('when it is paid already', () =>
      given(...paid)
        .when(payInvoice(2, 1n))
        .expectOnce(refused(2, 1n, 'payment_exceeds_due')))
    it('permanently, also after a reservation is released', () =>
      given(...approved, reserved(1, 2500n), refused(2, 100n, 'payment_exceeds_due'), released(1, 2500n))
        .when(payInvoice(2, 100n))
        .expectNothing())
    it('only if it exists', () => given().when(payInvoice(1, 1n)).expectRejected('resource_not_found'))
  })

  describe('follows a refund that its payment granted', () => {
    const apply = { type: 'ApplyRefund', payment_id: id('pay'), refund_id: id('rfd'), amount: 400n } as const
    const refundApplied: InvoiceEvent = {
      type: 'RefundApplied',
      data: { payment_id: id('pay'), refund_id: id('rfd'), amount: 400n },
    }

    it('when it is paid', () =>
      given(...paid)
        .when(apply)
        .expectOnce(refundApplied))
    it('when it is paid in part, and nothing more is due for it', () => {
      given(...approved, applied(1, 2000n))
        .when(apply)
        .expectOnce(refundApplied)
      given(...approved, applied(1, 2000n), refundApplied)
        .when(payInvoice(2, 501n))
        .expectOnce(refused(2, 501n, 'payment_exceeds_due'))
    })
    it('once', () =>
      given(...paid, refundApplied)
        .when(apply)
        .expectNothing())
    it('only if it exists', () => given().when(apply).expectRejected('resource_not_found'))
  })

  it('refuses with the same codes before the idempotency record as after it', () => {
    const state = stateAfter(invoice.decider, [...approved, applied(1, 1000n), reserved(2, 500n)])
    if (state.status === 'none') throw new Error('The invoice was not raised.')
    expect(stillDue(state)).to.equal(1000n)
    expect(refusalOf({ amount: 1000n, currency: 'USD' }, state)).to.equal(undefined)
    expect(refusalOf({ amount: 1001n, currency: 'USD' }, state)).to.equal('payment_exceeds_due')
    expect(refusalOf({ amount: 1001n, currency: 'EUR' }, state)).to.equal('payment_not_allowed')
  })
})
