/** Fixtures for the specs of the streams: readable ids, and the first events of an order, an invoice and a payment. */

import type { ApiKeyEvent, IssueApiKey, KeySecret, RotateApiKey } from '../../streams/apiKey/index.ts'
import type { IdempotencyRecord } from '../../streams/idempotencyRecord.ts'
import type { Id, IdPrefix } from '../../streams/ids.ts'
import type { InvoiceEvent, PayInvoice, RaiseInvoice } from '../../streams/invoice/index.ts'
import type { CompleteExport, OperationEvent, RequestExport } from '../../streams/operation/index.ts'
import type { CreateOrder, InvoiceOrder, Line, OrderEvent } from '../../streams/order/index.ts'
import type { InitiatePayment, PaymentEvent, PaymentTerms } from '../../streams/payment/index.ts'
import type { CreateSubscription, ReplaySubscription, SubscriptionEvent } from '../../streams/subscription/index.ts'

/** The nth id of its kind. */
export const id = <P extends IdPrefix>(prefix: P, n = 1): Id<P> => `${prefix}_${String(n).padStart(26, '0')}`

export const claim: IdempotencyRecord = {
  key_hash: 'aa'.repeat(32),
  caller: { subject: 'clerk', client: 'shop' },
  fingerprint: 'bb'.repeat(32),
  request: { amount: 100 },
  expires_at: '2026-12-31T00:00:00.000Z',
}

type First<E, T extends string> = Extract<E, { type: T }>

// --- An order over 25.00 USD -------------------------------------------------------------------------------------------

export const lines: [Line, Line] = [
  { sku: 'tea', description: null, quantity: 2, unit_amount: 450n },
  { sku: 'cup', description: 'Blue', quantity: 1, unit_amount: 1600n },
]

export const createOrder: CreateOrder = {
  type: 'CreateOrder',
  customer_reference: 'C-17',
  description: null,
  currency: 'USD',
  lines,
  metadata: { shop: 'north' },
  claim,
}
export const orderCreated: First<OrderEvent, 'OrderCreated'> = {
  type: 'OrderCreated',
  data: {
    customer_reference: 'C-17',
    description: null,
    currency: 'USD',
    lines: [...lines],
    total_amount: 2500n,
    metadata: { shop: 'north' },
    claim,
  },
}
export const invoiceOrder = (n = 1): InvoiceOrder => ({
  type: 'InvoiceOrder',
  invoice_id: id('inv', n),
  due_date: '2026-03-01',
  metadata: {},
  claim: null,
})
export const orderInvoiced = (n = 1): First<OrderEvent, 'OrderInvoiced'> => ({
  type: 'OrderInvoiced',
  data: {
    invoice_id: id('inv', n),
    amount_due: 2500n,
    currency: 'USD',
    due_date: '2026-03-01',
    metadata: {},
    claim: null,
  },
})

// --- Its invoice -------------------------------------------------------------------------------------------------------

const subject = { order_id: id('ord'), currency: 'USD', amount_due: 2500n }

export const raiseInvoice: RaiseInvoice = {
  type: 'RaiseInvoice',
  ...subject,
  due_date: '2026-03-01',
  metadata: { shop: 'north' },
  claim,
}
export const invoiceRaised: First<InvoiceEvent, 'InvoiceRaised'> = {
  type: 'InvoiceRaised',
  data: { ...subject, due_date: '2026-03-01', metadata: { shop: 'north' }, claim },
}
export const invoiceApproved: First<InvoiceEvent, 'InvoiceApproved'> = {
  type: 'InvoiceApproved',
  data: { ...subject, due_date: '2026-03-01', approved_by: 'boss' },
}
export const invoiceVoided: First<InvoiceEvent, 'InvoiceVoided'> = {
  type: 'InvoiceVoided',
  data: { ...subject, reason: 'typo' },
}
export const invoicePaid = (n: number): First<InvoiceEvent, 'InvoicePaid'> => ({
  type: 'InvoicePaid',
  data: { ...subject, amount_paid: 2500n, payment_id: id('pay', n) },
})

type Moved = 'PaymentReserved' | 'PaymentReleased' | 'PaymentApplied'
const moved =
  <T extends Moved>(type: T) =>
  (n: number, amount: bigint): { type: T; data: { payment_id: Id<'pay'>; amount: bigint } } => ({
    type,
    data: { payment_id: id('pay', n), amount },
  })
export const reserved = moved('PaymentReserved')
export const released = moved('PaymentReleased')
export const applied = moved('PaymentApplied')

type Refusal = First<InvoiceEvent, 'PaymentRefused'>
export const refused = (n: number, amount: bigint, code: Refusal['data']['code']): Refusal => ({
  type: 'PaymentRefused',
  data: { payment_id: id('pay', n), amount, code },
})

export const payInvoice = (n: number, amount: bigint, more: Partial<PayInvoice> = {}): PayInvoice => ({
  type: 'PayInvoice',
  payment_id: id('pay', n),
  amount,
  currency: 'USD',
  settlement: 'immediate',
  ...more,
})

// --- A payment of 10.00 USD --------------------------------------------------------------------------------------------

export const terms = (settlement: PaymentTerms['settlement']): PaymentTerms => ({
  invoice_id: id('inv'),
  order_id: id('ord'),
  amount: 1000n,
  currency: 'USD',
  reference: id('prf'),
  settlement,
})
const initiation = { metadata: { shop: 'north' }, claim, reference_stream: id('ref') }
export const initiatePayment = (settlement: PaymentTerms['settlement']): InitiatePayment => ({
  type: 'InitiatePayment',
  ...terms(settlement),
  ...initiation,
})
export const paymentInitiated = (settlement: PaymentTerms['settlement']): First<PaymentEvent, 'PaymentInitiated'> => ({
  type: 'PaymentInitiated',
  data: { ...terms(settlement), ...initiation },
})
export const paymentFailed = (
  settlement: PaymentTerms['settlement'],
  code: string,
  held_by: Id<'pay'> | null = null,
): First<PaymentEvent, 'PaymentFailed'> => ({
  type: 'PaymentFailed',
  data: { ...terms(settlement), code, held_by },
})

// --- An export of all payments -----------------------------------------------------------------------------------------

const exportTerms = {
  resource: 'payments',
  format: 'csv',
  filters: { currency: 'USD' },
  expires_at: '2026-02-01T00:00:00.000Z',
} as const
const file = { row_count: 3, byte_count: 120, sha256: 'cc'.repeat(32), from_position: 0n, to_position: 77n }

export const requestExport: RequestExport = { type: 'RequestExport', ...exportTerms, metadata: { desk: '4' }, claim }
export const exportRequested: First<OperationEvent, 'ExportRequested'> = {
  type: 'ExportRequested',
  data: { ...exportTerms, metadata: { desk: '4' }, claim },
}
export const completeExport = (run: string): CompleteExport => ({ type: 'CompleteExport', run, ...file })
export const exportCompleted = (attempt: number, run: string): First<OperationEvent, 'ExportCompleted'> => ({
  type: 'ExportCompleted',
  data: { ...exportTerms, attempt, run, ...file },
})

// --- A key that reads orders, for thirty days --------------------------------------------------------------------------

const keyTerms = { quota: { requests: 10, window_seconds: 60 }, lifetime_days: 30 }
const newSecret = (n: number) => ({ nonce: String(n).repeat(64), hash: `${n}f`.repeat(32) })

/** The nth secret; `expires_at` is thirty days after the key was issued, unless another time is named. */
export const keySecret = (n: number, expires_at = '2026-01-31T00:00:00.000Z'): KeySecret => ({
  ...newSecret(n),
  expires_at,
})

export const issueApiKey: IssueApiKey = {
  type: 'IssueApiKey',
  at: '2026-01-01T00:00:00.000Z',
  name: 'nightly',
  scopes: ['orders:read'],
  ...keyTerms,
  ...newSecret(1),
  metadata: { desk: '4' },
  claim,
}
export const apiKeyIssued: First<ApiKeyEvent, 'ApiKeyIssued'> = {
  type: 'ApiKeyIssued',
  data: { name: 'nightly', scopes: ['orders:read'], ...keyTerms, ...keySecret(1), metadata: { desk: '4' }, claim },
}
export const rotateApiKey = (n: number, at: string, overlap_seconds = 3600): RotateApiKey => ({
  type: 'RotateApiKey',
  at,
  ...newSecret(n),
  overlap_seconds,
  claim: null,
})
export const apiKeyRotated = (
  n: number,
  expires_at: string,
  previous_until: string,
): First<ApiKeyEvent, 'ApiKeyRotated'> => ({
  type: 'ApiKeyRotated',
  data: { ...keySecret(n, expires_at), previous_until, claim: null },
})
export const apiKeyRevoked: ApiKeyEvent = { type: 'ApiKeyRevoked', data: {} }

// --- A subscription to invoices that were paid ---------------------------------------------------------------------------

const delivered = {
  types: ['invoice.paid'],
  from_position: 0n,
  from_time: null,
  principal: 'books',
  scopes: ['events:subscribe', 'invoices:read'],
  metadata: { desk: '4' },
  claim,
}
export const createSubscription: CreateSubscription = { type: 'CreateSubscription', ...delivered }
export const subscriptionCreated: First<SubscriptionEvent, 'SubscriptionCreated'> = {
  type: 'SubscriptionCreated',
  data: delivered,
}
const again = { from_position: 5n, from_time: null, to_position: 90n }
export const replaySubscription = (withKey: string | null = null): ReplaySubscription => ({
  type: 'ReplaySubscription',
  ...again,
  claim: withKey === null ? null : { ...claim, key_hash: withKey },
})
export const subscriptionReplayed = (replay: number, withKey: string | null = null): SubscriptionEvent => ({
  type: 'SubscriptionReplayed',
  data: { replay, ...again, claim: withKey === null ? null : { ...claim, key_hash: withKey } },
})
