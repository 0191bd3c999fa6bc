import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { codecOf, type Upcaster } from '../../streams/codec.ts'
import { factOf } from '../../streams/facts.ts'
import { invoiceEvents } from '../../streams/invoice/events.ts'
import { invoice } from '../../streams/invoice/index.ts'
import { payment, type PaymentEvent } from '../../streams/payment/index.ts'
import { scenario } from '../support/scenario.ts'
import { id, paymentInitiated, terms } from './samples.ts'

/**
 * The worked examples of CONTRIBUTING.md, "How a mistake is repaired": stored events stay as they are, and the repair goes forward.
 */

type Stored = { readonly data: Readonly<Record<string, unknown>> }
const golden = JSON.parse(
  readFileSync(new URL('../golden/invoice/InvoiceRaised.v1.json', import.meta.url), 'utf8'),
) as Stored

describe('a bad form in stored events, repaired by an upcaster', () => {
  /** As a faulty build stored it at version 1: the day first, with dots. */
  const faulty = Object.freeze({ ...golden.data, due_date: '17.02.2026' })

  const dayFirst = /^(\d\d)\.(\d\d)\.(\d{4})$/
  const repairDueDate: Upcaster = data => ({
    ...data,
    due_date: String(data['due_date']).replace(dayFirst, '$3-$2-$1'),
  })
  const repaired = codecOf(invoiceEvents, { InvoiceRaised: [repairDueDate] })

  it('passes the schema of the faulty build, which shows it in every response', () => {
    expect(invoice.codec.decode('InvoiceRaised', faulty, 1).data).to.have.property('due_date', '17.02.2026')
  })

  it('is read as the event that should have been stored, and so are right events', () => {
    const right = invoice.codec.decode('InvoiceRaised', golden.data, 1)
    expect(repaired.decode('InvoiceRaised', faulty, 1)).to.deep.equal(right)
    expect(repaired.decode('InvoiceRaised', golden.data, 1)).to.deep.equal(right)
  })

  it('leaves the stored event as it is, and stores new ones at the next version', () => {
    const event = repaired.decode('InvoiceRaised', faulty, 1)
    expect(faulty.due_date).to.equal('17.02.2026')
    expect(repaired.encode(event)).to.deep.include({ schemaVersion: 2 })
    expect(repaired.decode('InvoiceRaised', repaired.encode(event).data, 2)).to.deep.equal(event)
  })

  it('stops an older build, which must not guess', () => {
    const { data, schemaVersion } = repaired.encode(repaired.decode('InvoiceRaised', faulty, 1))
    expect(() => invoice.codec.decode('InvoiceRaised', data, schemaVersion)).to.throw('unknown to this build')
  })
})

describe('a wrong fact, repaired by a compensating event', () => {
  const initiated = paymentInitiated('immediate')
  /** A faulty build recorded 1000 where 400 were paid. */
  const wrong: PaymentEvent = { type: 'PaymentSucceeded', data: terms('immediate') }
  const reason = 'Correction: 400 were paid, 1000 were recorded.'
  const correction: PaymentEvent = {
    type: 'PaymentRefunded',
    data: { ...terms('immediate'), refund_id: id('rfd', 1), refund_amount: 600n, refunded_amount: 600n, reason },
  }

  it('is a command of the operator, decided as any other, once', () =>
    scenario(payment.decider)
      .given(initiated, wrong)
      .when({ type: 'RefundPayment', refund_id: id('rfd', 1), amount: 600n, reason })
      .expectOnce(correction))

  it('is published as a further fact, while the wrong one stays published', () => {
    const factsOf = (events: readonly PaymentEvent[]) =>
      events.flatMap((event, revision) => {
        const of = { id: id('pay', 1), revision: BigInt(revision), position: 77n, metadata, eventId: EVENT_ID }
        const fact = factOf(payment.facts, { event, ...of })
        return fact === undefined ? [] : [{ type: fact.type, data: fact.data }]
      })
    const before = factsOf([initiated, wrong])
    const after = factsOf([initiated, wrong, correction])
    expect(after.slice(0, before.length)).to.deep.equal(before)
    expect(after.at(-1)).to.have.property('type', 'payment.refunded')
    expect(after.at(-1)?.data).to.deep.include({ refund_amount: 600, refunded_amount: 600, reason })
  })
})

const EVENT_ID = '00000000-0000-8000-a000-000000000001'
const metadata = {
  tenant: 'acme',
  subject: 'operator',
  client: 'ledger',
  authority: 'payments:refund',
  correlationId: 'corr-12345678',
  causationId: 'cause-1',
  at: '2026-02-03T04:05:06.789Z',
  schemaVersion: 1,
}
