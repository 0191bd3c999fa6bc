import { fold } from '../../projections/projection.ts'
import { type PaymentRow, payments } from '../../projections/payments/projection.ts'
import type { IdempotencyRecord } from '../../streams/idempotencyRecord.ts'
import { type Rejection, reject } from '../../streams/decider.ts'
import type { InvoiceId, PaymentId, RefundId } from '../../streams/ids.ts'
import { grantedRefund, refundable } from '../../streams/payment/index.ts'
import type { RefundTerms } from '../../streams/refund/index.ts'
import { asReplay, type CreationResult } from './idempotency/creation.ts'
import { idempotencyRecordIn, keyConflict } from './idempotency/conflicts.ts'
import type { Loaded } from './aggregateRepository.ts'
import { invoiceEntity, type KindOf, paymentEntity, refundEntity } from './entities.ts'
import { eventCountOf, tooManyChanges } from './streamGrowth.ts'
import { type Context, handle, type Ledger } from './commandHandler.ts'

/**
 * In steps, as a payment: initiation (the refund's stream, which binds the key), decision (the payment's stream),
 * consequence (the invoice). The answer is made from the payment's stream.
 */

export type NewRefund = RefundTerms & {
  readonly id: RefundId
  readonly idempotencyRecord: IdempotencyRecord
}

type Answer = CreationResult<PaymentRow>

/** Refunds a part of a payment, or the rest of it; or finds the refund that the same key made. */
export const refund = async (ledger: Ledger, request: NewRefund, context: Context): Promise<Answer> => {
  const refusal = await initiate(ledger, request, context)
  // A used key gets its first answer again, also when nothing is left to refund.
  if (refusal) return (await replayRefund(ledger, request, context)) ?? { kind: 'refused', rejection: refusal }
  await finishRefund(ledger, request.id, request, context)
  return outcomeOf(ledger, request.id, request.payment_id)
}

/** Binds the key. The refusal, for a key that was not used before, when it cannot be bound; undefined when it is. */
const initiate = async (ledger: Ledger, request: NewRefund, context: Context): Promise<Rejection | undefined> => {
  const { id, idempotencyRecord, payment_id, amount, reason } = request
  const payment = await ledger.aggregates.loadOwn(paymentEntity, payment_id, context.tenant)
  if (payment?.row === undefined) return reject('resource_not_found')
  const { row, state } = payment
  if (grantedRefund(state, amount) === undefined)
    return reject('payment_state_conflict', { state: row.state, refundable: refundable(state) })
  if (grantedRefund(state, amount) !== refundable(state) && (await isFull(ledger, payment)))
    return tooManyChanges(ledger.changesMax)
  const command = { type: 'InitiateRefund' as const, payment_id, amount, reason, claim: idempotencyRecord }
  const initiated = await handle(ledger, refundEntity, id, { command, context, load: 'assume_empty' })
  return initiated.ok ? undefined : reject('concurrent_modification')
}

/** Whether the payment or its invoice takes no further part refunds. All that is left can always be refunded. */
const isFull = async ({ aggregates, changesMax }: Ledger, payment: Loaded<KindOf<typeof paymentEntity>>) => {
  if (payment.state.status === 'none' || eventCountOf(payment) >= changesMax) return true
  return eventCountOf(await aggregates.load(invoiceEntity, payment.state.terms.invoice_id)) >= changesMax
}

/** Continues a refund, whose idempotency record is stored, from the step that it has reached to its end. */
export const finishRefund = async (
  ledger: Ledger,
  refund_id: RefundId,
  { payment_id, amount, reason }: RefundTerms,
  context: Context,
): Promise<void> => {
  const command = { type: 'RefundPayment' as const, refund_id, amount, reason }
  const decided = await handle(ledger, paymentEntity, payment_id, { command, context })
  if (!decided.ok || decided.state.status !== 'succeeded')
    throw new Error(`The payment of ${refund_id} could not be asked, though it was there before the initiation.`)
  const granted = decided.state.refunds.get(refund_id) ?? null
  if (granted !== null)
    await applyRefund(ledger, decided.state.terms.invoice_id, { payment_id, refund_id, amount: granted }, context)
}

/** Applies the refund that the payment's stream granted to the invoice. */
export const applyRefund = async (
  ledger: Ledger,
  invoiceId: InvoiceId,
  granted: { payment_id: PaymentId; refund_id: RefundId; amount: bigint },
  context: Context,
): Promise<void> => {
  const applied = await handle(ledger, invoiceEntity, invoiceId, {
    command: { type: 'ApplyRefund', ...granted },
    context,
  })
  if (!applied.ok) throw new Error(`${invoiceId} did not take the refund ${granted.refund_id}.`)
}

/** The outcome of the refund that the key initiated, which is finished if need be; undefined for a new key. */
export const replayRefund = async (
  ledger: Ledger,
  request: NewRefund,
  context: Context,
): Promise<Answer | undefined> => {
  const first = await ledger.aggregates.first(refundEntity, request.id)
  if (first === undefined) return undefined
  const conflict = keyConflict(ledger, request.payment_id, request.idempotencyRecord, idempotencyRecordIn([first]))
  if (conflict) return conflict
  const { claim: _, ...terms } = first.event.data
  await finishRefund(ledger, request.id, terms, context)
  return asReplay(await outcomeOf(ledger, request.id, terms.payment_id))
}

/** The payment as it was when this refund was decided: the same for every retry, forever. */
const outcomeOf = async ({ aggregates }: Ledger, id: RefundId, paymentId: PaymentId): Promise<Answer> => {
  let row: PaymentRow | undefined
  for await (const recorded of aggregates.events(paymentEntity, paymentId)) {
    row = fold(payments, row, recorded)
    const { event, position, metadata } = recorded
    if (event.type === 'PaymentRefunded' && event.data.refund_id === id) return { kind: 'created', row, position }
    if (event.type === 'RefundRefused' && event.data.refund_id === id)
      return { kind: 'refused', rejection: reject(event.data.code), firstCorrelationId: metadata.correlationId }
  }
  throw new Error(`The refund ${id} was driven to its end and has none.`)
}
