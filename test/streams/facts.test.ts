import { expect } from 'chai'
import type { AnyEvent } from '../../streams/decider.ts'
import type { Metadata, Recorded } from '../../streams/envelope.ts'
import { cloudEventOf, FACT_TYPES, factOf } from '../../streams/facts.ts'
import { aggregates } from '../../streams/index.ts'
import { invoice, type InvoiceEvent } from '../../streams/invoice/index.ts'
import { manifest } from '../../streams/manifest/index.ts'
import { operation } from '../../streams/operation/index.ts'
import { order, type OrderEvent } from '../../streams/order/index.ts'
import { payment, type PaymentEvent } from '../../streams/payment/index.ts'
import {
  applied,
  exportCompleted,
  id,
  invoiceApproved,
  invoicePaid,
  invoiceVoided,
  orderCreated,
  paymentFailed,
  paymentInitiated,
  terms,
} from './samples.ts'

const metadata: Metadata = {
  tenant: 'acme',
  subject: 'clerk',
  client: 'shop',
  authority: 'payments:write',
  correlationId: 'corr-12345678',
  causationId: 'cause-1',
  at: '2026-02-03T04:05:06.789Z',
  schemaVersion: 1,
}
const recorded = <E extends AnyEvent>(event: E, of: string, more: Partial<Metadata> = {}): Recorded<E> => ({
  event,
  eventId: '00000000-0000-8000-a000-000000000001',
  id: of,
  revision: 3n,
  position: 77n,
  metadata: { ...metadata, ...more },
})

const ofOrder = (event: OrderEvent) => factOf(order.facts, recorded(event, id('ord')))
const ofInvoice = (event: InvoiceEvent) => factOf(invoice.facts, recorded(event, id('inv')))
const ofPayment = (event: PaymentEvent) => factOf(payment.facts, recorded(event, id('pay')))

const subject = { invoice_id: id('inv'), order_id: id('ord'), currency: 'USD', exponent: 2, amount_due: 2500 }
const paymentTerms = { payment_id: id('pay'), ...terms('deferred'), amount: 1000, exponent: 2 }

describe('the facts of', () => {
  for (const [category, { codec, facts }] of Object.entries(aggregates))
    it(`${category} are decided for every event, and for no other`, () => {
      const types: readonly string[] = codec.types
      expect(Object.keys(facts).toSorted()).to.deep.equal(types.toSorted())
    })

  it('a created order have its total', () =>
    expect(ofOrder(orderCreated)).to.deep.equal({
      type: 'order.created',
      version: 1,
      data: { order_id: id('ord'), customer_reference: 'C-17', currency: 'USD', exponent: 2, total_amount: 2500 },
    }))

  it('a cancelled order have the reason', () =>
    expect(
      ofOrder({ type: 'OrderCancelled', data: { reason: 'late', currency: 'JPY', total_amount: 9n } }),
    ).to.deep.equal({
      type: 'order.cancelled',
      version: 1,
      data: { order_id: id('ord'), reason: 'late', currency: 'JPY', exponent: 0, total_amount: 9 },
    }))

  it('an approved invoice have the approver and the time', () =>
    expect(ofInvoice(invoiceApproved)).to.deep.equal({
      type: 'invoice.approved',
      version: 1,
      data: { ...subject, due_date: '2026-03-01', approved_by: 'boss', approved_at: metadata.at },
    }))

  it('a paid invoice have the payment and the time', () =>
    expect(ofInvoice(invoicePaid(4))).to.deep.equal({
      type: 'invoice.paid',
      version: 1,
      data: { ...subject, amount_paid: 2500, payment_id: id('pay', 4), paid_at: metadata.at },
    }))

  it('a voided invoice have the reason', () =>
    expect(ofInvoice(invoiceVoided)).to.deep.equal({
      type: 'invoice.voided',
      version: 1,
      data: { ...subject, reason: 'typo' },
    }))

  it('a successful payment have its terms', () =>
    expect(ofPayment({ type: 'PaymentSucceeded', data: terms('deferred') })).to.deep.equal({
      type: 'payment.succeeded',
      version: 1,
      data: paymentTerms,
    }))

  it('a failed payment have the code, and not the payment that has the reference', () =>
    expect(ofPayment(paymentFailed('deferred', 'payment_reference_conflict', id('pay', 9)))).to.deep.equal({
      type: 'payment.failed',
      version: 1,
      data: { ...paymentTerms, failure: { code: 'payment_reference_conflict' } },
    }))

  it('a refund have its amount, and the sum of all refunds of the payment', () => {
    const refund = { refund_id: id('rfd'), refund_amount: 400n, refunded_amount: 700n, reason: 'broken' }
    expect(ofPayment({ type: 'PaymentRefunded', data: { ...terms('deferred'), ...refund } })).to.deep.equal({
      type: 'payment.refunded',
      version: 1,
      data: { ...paymentTerms, refund_amount: 400, refunded_amount: 700, reason: 'broken' },
    })
  })

  it('a finished export have its content, with positions as texts', () =>
    expect(factOf(operation.facts, recorded(exportCompleted(2, 'a'), id('op')))).to.deep.equal({
      type: 'export.completed',
      version: 1,
      data: {
        operation_id: id('op'),
        resource: 'payments',
        format: 'csv',
        filters: { currency: 'USD' },
        row_count: 3,
        byte_count: 120,
        sha256: 'cc'.repeat(32),
        from_position: '0',
        to_position: '77',
        expires_at: '2026-02-01T00:00:00.000Z',
      },
    }))

  it('a manifest have the count and the hash between two positions', () => {
    const sealed = { topic: 'ledger.invoice.v1', count: 3, sha256: 'ab'.repeat(32) }
    const event = { type: 'ManifestSealed', data: { ...sealed, from_position: 7n, to_position: 2n ** 63n } } as const
    expect(factOf(manifest.facts, recorded(event, id('man')))).to.deep.equal({
      type: 'ledger.manifest',
      version: 1,
      data: { ...sealed, from_position: '7', to_position: '9223372036854775808' },
    })
  })

  it('internal events are none', () => {
    expect(ofPayment(paymentInitiated('immediate'))).to.equal(undefined)
    expect(ofInvoice(applied(1, 5n))).to.equal(undefined)
    expect(ofOrder({ type: 'OrderDeleted', data: {} })).to.equal(undefined)
  })

  it('never contain the key, its caller or its request', () => {
    expect(JSON.stringify(ofOrder(orderCreated))).to.not.match(/key_hash|fingerprint|aa{20}/)
  })
})

describe('a fact as a CloudEvent', () => {
  const fact = { type: 'invoice.paid', version: 2, data: { n: 1 } } as const
  const eventOf = (more: Partial<Metadata> = {}) => cloudEventOf(recorded(invoicePaid(1), id('inv'), more), fact)

  it('has the attributes of the contract, all of them texts', () =>
    expect(eventOf()).to.deep.equal({
      specversion: '1.0',
      id: '00000000-0000-8000-a000-000000000001',
      source: '/payment-ledger',
      type: 'invoice.paid',
      subject: id('inv'),
      time: '2026-02-03T04:05:06.789Z',
      datacontenttype: 'application/json',
      dataschema: '/schemas/invoice.paid.v2.json',
      partitionkey: id('inv'),
      sequence: '00000000000000000003',
      position: '77',
      correlationid: 'corr-12345678',
      causationid: 'cause-1',
      tenantid: 'acme',
      data: { n: 1 },
    }))

  it('has the trace of its request, if there is one', () => {
    expect(eventOf()).to.not.have.property('traceparent')
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    expect(eventOf({ traceparent })).to.include({ traceparent })
  })

  it('has names of lower case letters and digits, as CloudEvents requires', () => {
    for (const name of Object.keys(eventOf({ traceparent: 'x' }))) expect(name).to.match(/^[a-z0-9]{1,20}$/)
  })

  it('has a sequence whose order as text is that of the revisions, up to the largest', () => {
    const revisions = [0n, 9n, 10n, 99n, 2n ** 53n, 2n ** 64n - 1n]
    const sequences = revisions.map(
      revision => cloudEventOf({ ...recorded(invoicePaid(1), id('inv')), revision }, fact).sequence,
    )
    expect(sequences).to.deep.equal(sequences.toSorted())
    expect(new Set(sequences.map(sequence => sequence.length))).to.deep.equal(new Set([20]))
  })

  it('has one of the types of the contract', () => {
    expect([...FACT_TYPES].toSorted()).to.deep.equal([
      'export.completed',
      'invoice.approved',
      'invoice.paid',
      'invoice.voided',
      'ledger.manifest',
      'order.cancelled',
      'order.created',
      'payment.failed',
      'payment.refunded',
      'payment.succeeded',
    ])
  })
})
