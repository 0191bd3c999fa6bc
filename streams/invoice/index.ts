import type { Aggregate } from '../aggregate.ts'
import { codecOf } from '../codec.ts'
import { type InvoiceCode, type InvoiceCommand, type InvoiceState, invoiceDecider } from './decider.ts'
import { type InvoiceEvent, invoiceEvents } from './events.ts'
import { invoiceFacts } from './facts.ts'

export const invoice: Aggregate<InvoiceState, InvoiceCommand, InvoiceEvent, InvoiceCode> = {
  category: 'invoice',
  prefix: 'inv',
  decider: invoiceDecider,
  // The payment exists already when PayInvoice is sent, and the refund when ApplyRefund is, so their initiation checks the
  // length of the invoice's stream.
  growth: {
    RaiseInvoice: 'unlimited',
    ApproveInvoice: 'unlimited',
    VoidInvoice: 'unlimited',
    PayInvoice: 'unlimited',
    SettlePayment: 'unlimited',
    ReleasePayment: 'unlimited',
    ApplyRefund: 'unlimited',
  },
  codec: codecOf(invoiceEvents),
  facts: invoiceFacts,
}

export type * from './decider.ts'
export { refusalOf, stillDue } from './decider.ts'
export type * from './events.ts'
