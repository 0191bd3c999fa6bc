import type { AnyEvent } from '../streams/decider.ts'
import type { Recorded } from '../streams/envelope.ts'
import type { InvoiceEvent } from '../streams/invoice/index.ts'
import type { PaymentEvent, PaymentTerms } from '../streams/payment/index.ts'
import type { AccountKind, Direction } from './chartOfAccounts.ts'

/**
 * The function from a money event to its balanced journal entry. Each movement of money is booked from one event only:
 * debts from the invoice's stream, payments and refunds from the payment's stream. Events of an invoice about its
 * payments repeat these movements, and are not booked.
 *
 *   event                             debit              credit
 *   InvoiceApproved                   receivables        revenue
 *   InvoiceVoided, of an approved one reversal of the entry of InvoiceApproved
 *   PaymentAccepted (deferred)        cash-in-clearing   receivables        pending until it is settled or fails
 *   PaymentSucceeded, immediate       cash               receivables
 *   PaymentSucceeded, deferred        cash               cash-in-clearing   ends the pending part
 *   PaymentFailed, of an accepted one reversal of the entry of PaymentAccepted
 *   PaymentRefunded                   revenue            refunds-payable
 */

/** The kinds of entries with the description that readers see. */
export const ENTRY_KINDS = {
  invoice_approved: 'Invoice approved',
  invoice_voided: 'Invoice voided',
  payment_pending: 'Payment pending',
  payment_received: 'Payment received',
  payment_settled: 'Payment settled',
  payment_failed: 'Payment failed',
  payment_refunded: 'Payment refunded',
} as const satisfies Readonly<Record<string, string>>
export type EntryKind = keyof typeof ENTRY_KINDS

export type BookingLine = { readonly account: AccountKind; readonly direction: Direction; readonly amount: bigint }

/** An entry whose customer is not known yet. */
export type Booking = {
  readonly kind: EntryKind
  readonly order_id: string
  readonly invoice_id: string
  readonly payment_id: string | null
  readonly currency: string
  readonly lines: readonly BookingLine[]
  /** The change of the part of each balance that a settlement or a failure will end. */
  readonly pending: readonly BookingLine[]
  /**
   * The kind of the entry of the same payment, or of the same invoice, that this one reverses. Without such an entry
   * nothing is booked: an invoice may be voided before its approval.
   */
  readonly reverses?: EntryKind
}

type BookingMap<E extends AnyEvent> = {
  readonly [T in E['type']]: 'not_booked' | ((recorded: Recorded<Extract<E, { type: T }>>) => Booking | undefined)
}

const move = (debit: AccountKind, credit: AccountKind, amount: bigint): readonly BookingLine[] => [
  { account: debit, direction: 'debit', amount },
  { account: credit, direction: 'credit', amount },
]

type InvoiceSubject = { readonly order_id: string; readonly currency: string }
const ofInvoice = (invoice_id: string, { order_id, currency }: InvoiceSubject) => ({
  order_id,
  invoice_id,
  payment_id: null,
  currency,
  pending: [],
})

const ofPayment = (payment_id: string, { order_id, invoice_id, currency }: PaymentTerms) => ({
  order_id,
  invoice_id,
  payment_id,
  currency,
  pending: [],
})

const clearing = (amount: bigint) => move('cash-in-clearing', 'receivables', amount)
const cleared = (amount: bigint) => move('receivables', 'cash-in-clearing', amount)

/** In a payment's stream revision 1 is the outcome of its request; a later failure is that of an accepted payment. */
const REVISION_OF_OUTCOME = 1n

const ON_INVOICE: BookingMap<InvoiceEvent> = {
  InvoiceRaised: 'not_booked',
  InvoiceApproved: ({ id, event: { data } }) => ({
    ...ofInvoice(id, data),
    kind: 'invoice_approved',
    lines: move('receivables', 'revenue', data.amount_due),
  }),
  InvoiceVoided: ({ id, event: { data } }) => ({
    ...ofInvoice(id, data),
    kind: 'invoice_voided',
    lines: move('revenue', 'receivables', data.amount_due),
    reverses: 'invoice_approved',
  }),
  PaymentReserved: 'not_booked',
  PaymentRefused: 'not_booked',
  PaymentReleased: 'not_booked',
  PaymentApplied: 'not_booked',
  RefundApplied: 'not_booked',
  InvoicePaid: 'not_booked',
}

const ON_PAYMENT: BookingMap<PaymentEvent> = {
  PaymentInitiated: 'not_booked',
  PaymentAccepted: ({ id, event: { data } }) => ({
    ...ofPayment(id, data),
    kind: 'payment_pending',
    lines: clearing(data.amount),
    pending: clearing(data.amount),
  }),
  PaymentSucceeded: ({ id, event: { data } }) =>
    data.settlement === 'deferred'
      ? {
          ...ofPayment(id, data),
          kind: 'payment_settled',
          lines: move('cash', 'cash-in-clearing', data.amount),
          pending: cleared(data.amount),
        }
      : { ...ofPayment(id, data), kind: 'payment_received', lines: move('cash', 'receivables', data.amount) },
  PaymentFailed: ({ id, revision, event: { data } }) =>
    revision > REVISION_OF_OUTCOME
      ? {
          ...ofPayment(id, data),
          kind: 'payment_failed',
          lines: cleared(data.amount),
          pending: cleared(data.amount),
          reverses: 'payment_pending',
        }
      : undefined,
  PaymentRefunded: ({ id, event: { data } }) => ({
    ...ofPayment(id, data),
    kind: 'payment_refunded',
    lines: move('revenue', 'refunds-payable', data.refund_amount),
  }),
  RefundRefused: 'not_booked',
}

const BOOKINGS: Readonly<Record<string, unknown>> = { ...ON_INVOICE, ...ON_PAYMENT }

export const bookingOf = (recorded: Recorded<AnyEvent>): Booking | undefined => {
  const book = BOOKINGS[recorded.event.type]
  if (typeof book !== 'function') return undefined
  const booking = (book as (recorded: Recorded<AnyEvent>) => Booking | undefined)(recorded)
  return booking?.lines.some(({ amount }) => amount > 0n) ? booking : undefined
}
