import fc from 'fast-check'
import type { ApiKeyCommand, ApiKeyEvent } from '../../streams/apiKey/index.ts'
import type { SubscriptionCommand, SubscriptionEvent } from '../../streams/subscription/index.ts'
import type { InvoiceCommand, InvoiceEvent } from '../../streams/invoice/index.ts'
import type { OperationCommand, OperationEvent } from '../../streams/operation/index.ts'
import type { OrderCommand, OrderEvent } from '../../streams/order/index.ts'
import type { PaymentCommand, PaymentEvent } from '../../streams/payment/index.ts'
import type { ReferenceCommand, ReferenceEvent } from '../../streams/reference/index.ts'
import {
  apiKeyIssued,
  apiKeyRevoked,
  apiKeyRotated,
  createSubscription,
  applied,
  completeExport,
  createOrder,
  exportCompleted,
  exportRequested,
  id,
  initiatePayment,
  invoiceApproved,
  invoiceOrder,
  invoicePaid,
  invoiceRaised,
  invoiceVoided,
  issueApiKey,
  lines,
  orderCreated,
  orderInvoiced,
  paymentFailed,
  paymentInitiated,
  payInvoice,
  raiseInvoice,
  refused,
  released,
  requestExport,
  reserved,
  replaySubscription,
  rotateApiKey,
  subscriptionCreated,
  subscriptionReplayed,
  terms,
} from './samples.ts'

/** Arbitraries of the commands and events of each aggregate, for fast-check. */

// Ids are few, and amounts are around the due amount of 2500, so that generated commands conflict often.
const few = fc.integer({ min: 1, max: 4 })
const amount = fc.constantFrom(1n, 500n, 1000n, 1249n, 1250n, 2499n, 2500n, 2501n, 9000n)
const settlement = fc.constantFrom('immediate' as const, 'deferred' as const)
const currency = fc.constantFrom('USD', 'USD', 'USD', 'EUR')

export const anyInvoiceCommand: fc.Arbitrary<InvoiceCommand> = fc.oneof(
  fc.constant(raiseInvoice),
  fc.constant({ type: 'ApproveInvoice' as const, approved_by: 'boss' }),
  fc.record({ type: fc.constant('VoidInvoice' as const), reason: fc.constant(null) }),
  {
    weight: 4,
    arbitrary: fc
      .tuple(few, amount, settlement, currency)
      .map(([n, sum, how, code]) => payInvoice(n, sum, { settlement: how, currency: code })),
  },
  few.map(n => ({ type: 'SettlePayment' as const, payment_id: id('pay', n) })),
  few.map(n => ({ type: 'ReleasePayment' as const, payment_id: id('pay', n) })),
  few.map(n => ({ type: 'ApplyRefund' as const, payment_id: id('pay', n), refund_id: id('rfd', n), amount: 1n })),
)
export const anyInvoiceEvent: fc.Arbitrary<InvoiceEvent> = fc.oneof(
  fc.constantFrom<InvoiceEvent>(invoiceRaised, invoiceApproved, invoiceVoided, invoicePaid(1), {
    type: 'RefundApplied',
    data: { payment_id: id('pay'), refund_id: id('rfd'), amount: 1n },
  }),
  fc
    .tuple(few, amount)
    .chain(([n, sum]) =>
      fc.constantFrom<InvoiceEvent>(
        reserved(n, sum),
        released(n, sum),
        applied(n, sum),
        refused(n, sum, 'payment_not_allowed'),
      ),
    ),
)

export const anyOrderCommand: fc.Arbitrary<OrderCommand> = fc.oneof(
  fc.constantFrom<OrderCommand>(
    createOrder,
    { type: 'ChangeOrder', description: 'x' },
    { type: 'ChangeOrder', lines: [lines[0]] },
    { type: 'CancelOrder', reason: null },
    { type: 'DeleteOrder' },
  ),
  few.map(n => invoiceOrder(n)),
  few.map(n => ({ type: 'ReopenOrder' as const, invoice_id: id('inv', n) })),
  few.map(n => ({ type: 'CompleteOrder' as const, invoice_id: id('inv', n) })),
)
export const anyOrderEvent: fc.Arbitrary<OrderEvent> = fc.oneof(
  fc.constantFrom<OrderEvent>(
    orderCreated,
    { type: 'OrderChanged', data: { description: 'x' } },
    { type: 'OrderCancelled', data: { reason: null, currency: 'USD', total_amount: 1n } },
    { type: 'OrderDeleted', data: {} },
  ),
  few.map(n => orderInvoiced(n)),
  few.map(n => ({
    type: 'OrderInvoiceRefused' as const,
    data: { invoice_id: id('inv', n), code: 'order_has_invoices' as const },
  })),
  few.map(n => ({ type: 'OrderReopened' as const, data: { invoice_id: id('inv', n) } })),
  few.map(n => ({ type: 'OrderCompleted' as const, data: { invoice_id: id('inv', n) } })),
)

export const anyPaymentCommand: fc.Arbitrary<PaymentCommand> = fc.oneof(
  settlement.map(initiatePayment),
  fc.constantFrom<PaymentCommand>(
    { type: 'ConfirmPayment' },
    { type: 'SettlePayment' },
    { type: 'RefusePayment', code: 'payment_exceeds_due', held_by: null },
    { type: 'FailPayment', code: 'card_declined' },
  ),
  {
    weight: 3,
    arbitrary: fc
      .tuple(few, fc.constantFrom(1n, 400n, 600n, 1000n, 1001n, null))
      .map(([n, sum]) => ({ type: 'RefundPayment' as const, refund_id: id('rfd', n), amount: sum, reason: 'broken' })),
  },
)
export const anyPaymentEvent: fc.Arbitrary<PaymentEvent> = settlement.chain(how =>
  fc.constantFrom<PaymentEvent>(
    paymentInitiated(how),
    { type: 'PaymentAccepted', data: terms(how) },
    { type: 'PaymentSucceeded', data: terms(how) },
    paymentFailed(how, 'card_declined'),
    {
      type: 'PaymentRefunded',
      data: { ...terms(how), refund_id: id('rfd'), refund_amount: 1n, refunded_amount: 1n, reason: 'broken' },
    },
    { type: 'RefundRefused', data: { refund_id: id('rfd', 2), code: 'payment_state_conflict' } },
  ),
)

export const anyReferenceCommand: fc.Arbitrary<ReferenceCommand> = fc
  .tuple(fc.constantFrom('TakeReference' as const, 'ReleaseReference' as const), few)
  .map(([type, n]) => ({ type, payment_id: id('pay', n) }))
export const anyReferenceEvent: fc.Arbitrary<ReferenceEvent> = fc
  .tuple(few, few)
  .chain(([n, other]) =>
    fc.constantFrom<ReferenceEvent>(
      { type: 'ReferenceTaken', data: { payment_id: id('pay', n) } },
      { type: 'ReferenceReleased', data: { payment_id: id('pay', n) } },
      { type: 'ReferenceRefused', data: { payment_id: id('pay', n), held_by: id('pay', other) } },
    ),
  )

/** The commands that lead a payment to its success, at once or by settlement. */
export const settled: fc.Arbitrary<PaymentCommand[]> = settlement.map(how => [
  initiatePayment(how),
  { type: 'ConfirmPayment' },
  ...(how === 'deferred' ? [{ type: 'SettlePayment' as const }] : []),
])

const run = fc.constantFrom('run 1', 'run 2', 'run 3')
const sentAt = fc.constantFrom('2026-01-31T23:59:59.999Z', '2026-02-01T00:00:00.000Z')

export const anyOperationCommand: fc.Arbitrary<OperationCommand> = fc.oneof(
  fc.constant(requestExport),
  { weight: 4, arbitrary: run.map(name => ({ type: 'StartAttempt' as const, run: name })) },
  {
    weight: 2,
    arbitrary: run.map(name => ({ type: 'FailAttempt' as const, run: name, code: 'dependency_unavailable' })),
  },
  run.map(completeExport),
  fc.constant({ type: 'CancelOperation' as const }),
  sentAt.map(at => ({ type: 'ExpireOperation' as const, at })),
)
export const anyOperationEvent: fc.Arbitrary<OperationEvent> = fc
  .tuple(few, run)
  .chain(([attempt, name]) =>
    fc.constantFrom<OperationEvent>(
      exportRequested,
      { type: 'OperationStarted', data: { attempt, run: name } },
      { type: 'OperationAttemptFailed', data: { attempt, run: name, code: 'dependency_unavailable' } },
      exportCompleted(attempt, name),
      { type: 'OperationFailed', data: { attempt, code: 'internal_error' } },
      { type: 'OperationCancelled', data: {} },
      { type: 'OperationExpired', data: {} },
    ),
  )

/** The days of January, and the first of February, when the first secret has expired. */
const day = fc.integer({ min: 0, max: 31 }).map(n => new Date(Date.UTC(2026, 0, 1 + n)).toISOString())
const secretNumber = fc.integer({ min: 1, max: 9 })

export const anyApiKeyCommand: fc.Arbitrary<ApiKeyCommand> = fc.oneof(
  fc.constantFrom<ApiKeyCommand>(issueApiKey, { type: 'RevokeApiKey' }),
  {
    weight: 4,
    arbitrary: fc
      .tuple(secretNumber, day, fc.constantFrom(0, 60, 604_800))
      .map(([n, at, overlap]) => rotateApiKey(n, at, overlap)),
  },
)
export const anyApiKeyEvent: fc.Arbitrary<ApiKeyEvent> = fc.oneof(
  fc.constantFrom<ApiKeyEvent>(apiKeyIssued, apiKeyRevoked),
  fc.tuple(secretNumber, day, day).map(([n, until, previousUntil]) => apiKeyRotated(n, until, previousUntil)),
)

const replayNumber = fc.integer({ min: 1, max: 4 })
const replayKey = fc.constantFrom(null, 'key 1', 'key 2')

export const anySubscriptionCommand: fc.Arbitrary<SubscriptionCommand> = fc.oneof(
  fc.constantFrom<SubscriptionCommand>(
    createSubscription,
    { type: 'PauseSubscription' },
    { type: 'ResumeSubscription' },
    { type: 'StopSubscription', reason: 'scope_revoked' },
    { type: 'DeleteSubscription' },
  ),
  replayKey.map(replaySubscription),
  replayNumber.map(replay => ({ type: 'CompleteReplay' as const, replay })),
)
export const anySubscriptionEvent: fc.Arbitrary<SubscriptionEvent> = fc.oneof(
  fc.constantFrom<SubscriptionEvent>(
    subscriptionCreated,
    { type: 'SubscriptionPaused', data: {} },
    { type: 'SubscriptionResumed', data: {} },
    { type: 'SubscriptionStopped', data: { reason: 'scope_revoked' } },
    { type: 'SubscriptionDeleted', data: {} },
  ),
  fc.tuple(replayNumber, replayKey).map(([replay, key]) => subscriptionReplayed(replay, key)),
  replayNumber.map(replay => ({ type: 'SubscriptionReplayCompleted' as const, data: { replay } })),
)
