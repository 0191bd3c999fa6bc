import type { PaymentRow } from '../../projections/payments/projection.ts'
import { isRejection, reject, type GrowthCode, type Rejection, type RejectionParams } from '../../streams/decider.ts'
import type { Recorded } from '../../streams/envelope.ts'
import type { OrderId, PaymentId, ReferenceId } from '../../streams/ids.ts'
import type { PaymentEvent, PaymentTerms, RefusalCode } from '../../streams/payment/index.ts'
import { Unavailable } from '../ports.ts'
import { withKeyLock, waitForConcurrentRequest } from './idempotency/keyLock.ts'
import { asReplay, type CreationResult, rowUntil } from './idempotency/creation.ts'
import { idempotencyRecordIn, keyConflict } from './idempotency/conflicts.ts'
import { invoiceEntity, paymentEntity, referenceEntity, type KindOf } from './entities.ts'
import { type Context, handle, type Ledger } from './commandHandler.ts'
import { type InvoiceState, refusalOf, stillDue } from '../../streams/invoice/index.ts'
import { eventCountOf, tooManyChanges } from './streamGrowth.ts'
import type { Loaded } from './aggregateRepository.ts'
import type { Annotations, IdempotencyRecord } from '../../streams/idempotencyRecord.ts'

/**
 * A payment is decided in four steps on three streams, without a transaction across them:
 *
 *   step         stream, and the reason for it
 *   initiation   payment stream, expected: no stream. Stores the idempotency record, which binds the key: from here on a
 *                retry finds the payment.
 *   reference    reference stream. One payment per business reference.
 *   reservation  invoice stream. The one place where two payments that race for the same amount are decided.
 *   outcome      payment stream. Every answer to this key is made from it.
 *
 * Each step is idempotent by the payment's id, and each refusal is an event in the stream that decided it. Any number of
 * attempts (the request, its retries, payment recovery after a crash) may therefore continue a payment from the step that
 * it has reached, even at the same time, and all come to the same outcome.
 */

/** A personal text (personalTexts.ts), stored when the checks have passed, before the initiation. */
export type PersonalReference = {
  readonly stream: ReferenceId
  /** Stores the text, unless `answer` finds the key or the reference used. */
  readonly store: <T>(
    answer: () => Promise<T | undefined>,
  ) => Promise<{ readonly token: string } | { readonly answer: T }>
}

export type NewPayment = Omit<PaymentTerms, 'order_id' | 'reference'> & {
  readonly reference: PersonalReference | null
  readonly id: PaymentId
  readonly metadata: Annotations
  readonly idempotencyRecord: IdempotencyRecord
  /** The caller waits this long for the outcome, counted from the call of `pay`. */
  readonly waitMs: number
}

type Outcome = CreationResult<PaymentRow>
const isOutcome = (event: PaymentEvent): boolean => event.type !== 'PaymentInitiated'

/** Creates the payment, or finds the one that the same key created. */
export const pay = async (ledger: Ledger, payment: NewPayment, context: Context): Promise<Outcome> => {
  const untilMs = ledger.world.monotonicMs() + payment.waitMs
  const { id, reference } = payment
  const checked = await checkPayment(ledger, payment, context.tenant)
  if (isRejection(checked)) {
    // A request with a used key gets the stored answer instead of this refusal, so a retry never gets another answer.
    const used = (await lookUp(ledger, payment)) ?? { answer: { kind: 'refused' as const, rejection: checked } }
    return answerWithin(ledger, { id, ...used, untilMs }, context)
  }
  if (!(await waitForConcurrentRequest(ledger, id))) return { kind: 'concurrent_request' }
  ledger.world.crashPoint('before_initiation')
  const initiateOnce = () => initiate(ledger, { ...payment, order_id: checked.orderId }, context)
  const attempt = await (reference === null ? initiateOnce() : withKeyLock(ledger, id, initiateOnce))
  if ('row' in attempt && !attempt.isResumed) ledger.world.crashPoint('after_initiation')
  return answerWithin(ledger, { id, ...attempt, untilMs }, context)
}

/** The answer to a request whose key or reference is taken; undefined for a new payment. */
export const replayPayment = async (
  ledger: Ledger,
  payment: NewPayment,
  context: Context,
): Promise<Outcome | undefined> => {
  const untilMs = ledger.world.monotonicMs() + payment.waitMs
  const previous = await lookUpTaken(ledger, payment)
  return previous && answerWithin(ledger, { id: payment.id, ...previous, untilMs }, context)
}

/** The answer of a request, or the payment that its key has initiated and that is to be finished. */
type Attempt = { readonly answer: Outcome } | (Pick<Initiated, 'row' | 'position'> & { readonly isResumed: boolean })

const initiate = async (
  ledger: Ledger,
  { order_id, ...payment }: NewPayment & { readonly order_id: OrderId },
  context: Context,
): Promise<Attempt> => {
  const stored = await storeReference(ledger, payment)
  if ('answer' in stored) return stored.answer
  const command = { ...initiationOf(payment, stored.token), order_id }
  const initiated = await handle(ledger, paymentEntity, payment.id, { command, context, load: 'assume_empty' })
  if (initiated.ok && initiated.row) return { row: initiated.row, position: initiated.position, isResumed: false }
  const used = await lookUp(ledger, payment)
  return used ?? { answer: { kind: 'refused', rejection: reject('concurrent_modification') } }
}

/** Stores the text of the reference. One that was erased is not stored again if its key or the reference is taken. */
const storeReference = async (ledger: Ledger, payment: NewPayment) => {
  const { reference } = payment
  return reference === null ? { token: null } : reference.store(() => lookUpTaken(ledger, payment))
}

/** The answer of a key that was used before, or the refusal of a reference that another payment holds. */
const lookUpTaken = async (ledger: Ledger, payment: NewPayment): Promise<Attempt | undefined> => {
  const used = await lookUp(ledger, payment)
  if (used !== undefined || payment.reference === null) return used
  const { holder } = (await ledger.aggregates.load(referenceEntity, payment.reference.stream)).state
  if (holder === null || holder === payment.id) return undefined
  return { answer: { kind: 'refused', rejection: reject('payment_reference_conflict', { payment_id: holder }) } }
}

type Initiated = {
  readonly id: PaymentId
  readonly row: PaymentRow
  readonly position: bigint
  /** The time on the monotonic clock until which the caller waits for the outcome. */
  readonly untilMs: number
}

/**
 * Finishes a payment whose key is bound. `in_progress` (a 202) when `untilMs` has come or a dependency does not answer.
 */
const finishPaymentWithin = async (
  ledger: Ledger,
  { untilMs, ...initiated }: Initiated,
  context: Context,
): Promise<Outcome> => {
  const inProgress = { kind: 'in_progress' as const, ...initiated }
  const finishOrLoad = async (): Promise<Outcome> => {
    const finished = await finishPayment(ledger, initiated.id, context)
    return finished ?? (await loadOutcome(ledger, initiated.id)) ?? inProgress
  }
  const answer = finishOrLoad().catch((error: unknown) => {
    if (error instanceof Unavailable) return inProgress
    throw error
  })
  const waited = new AbortController()
  const { world } = ledger
  const timeout = world.sleep(Math.max(0, untilMs - world.monotonicMs()), waited.signal).then(() => inProgress)
  return Promise.race([answer, timeout]).finally(() => waited.abort('over'))
}

/** For a key that was used before: the recorded outcome of its payment, or the payment to resume. Undefined for a new key. */
const lookUp = async (ledger: Ledger, { id, idempotencyRecord }: NewPayment): Promise<Attempt | undefined> => {
  const history = await beginningOf(ledger, id)
  if (history.length === 0) return undefined
  const conflict = keyConflict(ledger, id, idempotencyRecord, idempotencyRecordIn(history))
  if (conflict) return { answer: conflict }
  const outcome = await outcomeIn(history)
  if (outcome) return { answer: asReplay(outcome) }
  const initiated = await rowUntil(paymentEntity, history)
  return initiated && { row: initiated.row, position: initiated.last.position, isResumed: true }
}

const answerWithin = async (
  ledger: Ledger,
  attempt: Attempt & Pick<Initiated, 'id' | 'untilMs'>,
  context: Context,
): Promise<Outcome> => {
  if ('answer' in attempt) return attempt.answer
  const { isResumed, ...initiated } = attempt
  const answer = await finishPaymentWithin(ledger, initiated, context)
  return isResumed ? asReplay(answer) : answer
}

const beginningOf = ({ aggregates }: Ledger, id: PaymentId): Promise<Recorded<PaymentEvent>[]> =>
  Array.fromAsync(aggregates.events(paymentEntity, id, { limit: 2 }))

/** The outcome in the payment's stream, the same for every retry; undefined before there is one. */
const outcomeIn = async (history: readonly Recorded<PaymentEvent>[]): Promise<Outcome | undefined> => {
  const outcome = await rowUntil(paymentEntity, history, isOutcome)
  if (outcome === undefined) return undefined
  const { row, last } = outcome
  if (last.event.type !== 'PaymentFailed') return { kind: 'created', row, position: last.position }
  const { code, held_by } = last.event.data
  const rejection = reject(code, held_by === null ? undefined : { payment_id: held_by })
  return { kind: 'refused', rejection, firstCorrelationId: history[0]?.metadata.correlationId ?? '' }
}

const loadOutcome = async (ledger: Ledger, id: PaymentId) => outcomeIn(await beginningOf(ledger, id))

type Refusal = { readonly code: RefusalCode; readonly held_by: PaymentId | null }

/** Continues a payment to its outcome. Undefined when that has to be read from the payment's stream. */
export const finishPayment = async (ledger: Ledger, id: PaymentId, context: Context): Promise<Outcome | undefined> => {
  const { state } = ledger.aggregates.cached(paymentEntity, id) ?? (await ledger.aggregates.load(paymentEntity, id))
  if (state.status !== 'initiated') return undefined
  const reference = state.referenceStream
  const refusal =
    (await takeReference(ledger, id, reference, context)) ?? (await reserve(ledger, id, state.terms, context))
  ledger.world.crashPoint('after_reservation')
  if (refusal) return refuse(ledger, id, { ...refusal, reference }, context)
  const confirmed = await handle(ledger, paymentEntity, id, { command: { type: 'ConfirmPayment' }, context })
  ledger.world.crashPoint('after_outcome')
  // Revision 1 is the outcome, whichever attempt recorded it; the stream may have moved on since.
  if (!confirmed.ok || confirmed.row?.revision !== 1n) return undefined
  return { kind: 'created', row: confirmed.row, position: confirmed.position }
}

const takeReference = async (
  ledger: Ledger,
  payment_id: PaymentId,
  reference: ReferenceId | null,
  context: Context,
): Promise<Refusal | undefined> => {
  if (reference === null) return undefined
  const command = { type: 'TakeReference' as const, payment_id }
  // Not read first: the reference was checked before, and is nearly always free.
  const holder = await handle(ledger, referenceEntity, reference, { command, context, load: 'assume_empty' })
  ledger.world.crashPoint('after_reference')
  // So many payments have raced for the reference that it takes no further one.
  if ('rejected' in holder) return { code: 'payment_reference_conflict', held_by: null }
  if (!holder.ok) throw new Error(`The reference of ${payment_id} was refused without a decision.`)
  const held_by = holder.state.refused.get(payment_id)
  return held_by && { code: 'payment_reference_conflict', held_by }
}

const reserve = async (ledger: Ledger, payment_id: PaymentId, terms: PaymentTerms, context: Context) => {
  const { invoice_id, amount, currency, settlement } = terms
  const command = { type: 'PayInvoice' as const, payment_id, amount, currency, settlement }
  const reserved = await handle(ledger, invoiceEntity, invoice_id, { command, context })
  if (!reserved.ok || reserved.state.status === 'none')
    throw new Error(`The invoice of ${payment_id} was not found, though it existed before the initiation.`)
  const allocation = reserved.state.payments.get(payment_id)
  return allocation?.status === 'refused' ? { code: allocation.code, held_by: null } : undefined
}

const refuse = async (
  ledger: Ledger,
  id: PaymentId,
  { code, held_by, reference }: Refusal & { readonly reference: ReferenceId | null },
  context: Context,
): Promise<Outcome | undefined> => {
  // The reference is released before the outcome is recorded, because a payment with an outcome is not continued to release
  // it.
  if (reference !== null) {
    const command = { type: 'ReleaseReference' as const, payment_id: id }
    const released = await handle(ledger, referenceEntity, reference, { command, context })
    if (!released.ok) throw new Error(`The reference of ${id} was not released.`)
  }
  const handled = await handle(ledger, paymentEntity, id, {
    command: { type: 'RefusePayment', code, held_by },
    context,
  })
  if (!handled.ok) throw new Error(`RefusePayment was rejected for ${id}.`)
  ledger.world.crashPoint('after_outcome')
  return loadOutcome(ledger, id)
}

// The checks of a new payment against its invoice and its reference, before any append.

type PaymentRefusalCode =
  | 'resource_not_found'
  | 'payment_not_allowed'
  | 'payment_exceeds_due'
  | 'payment_reference_conflict'
  | 'payment_state_conflict'
  | 'concurrent_modification'
  | GrowthCode

type PaymentRequest = Omit<PaymentTerms, 'order_id' | 'reference'> & {
  readonly id: PaymentId
  readonly reference: { readonly stream: ReferenceId } | null
}
type RaisedInvoice = Exclude<InvoiceState, { status: 'none' }>

/** Checks that refuse before any durable effect. The invoice's stream makes the final decision on the amount. */
const checkPayment = async (
  ledger: Ledger,
  payment: PaymentRequest,
  tenant: string,
): Promise<RaisedInvoice | Rejection<PaymentRefusalCode>> => {
  const { reference } = payment
  const [invoice, holder] = await Promise.all([
    payableInvoice(ledger, payment, tenant),
    reference === null ? null : holderOf(ledger, reference.stream),
  ])
  if (isRejection(invoice)) return invoice
  if (holder !== null && holder !== payment.id) return reject('payment_reference_conflict', { payment_id: holder })
  return invoice
}

/**
 * The payment that holds the reference; null unless this process has seen it taken, since it is nearly always free and
 * its stream decides in any case. With siblings the stream is read: another process may serve the caller now.
 */
const holderOf = async ({ aggregates, hasSiblings }: Ledger, id: ReferenceId): Promise<PaymentId | null> => {
  const seen = hasSiblings || aggregates.cached(referenceEntity, id)?.state.holder
  if (!seen) return null
  return (await aggregates.load(referenceEntity, id)).state.holder
}

/**
 * Whether the invoice takes no further part payments. All that is due can always be paid, but not deferred: that may
 * fail and come again.
 */
const isFull = (
  { changesMax }: Ledger,
  loaded: Loaded<KindOf<typeof invoiceEntity>>,
  { amount, settlement }: PaymentRequest,
): boolean => {
  if (eventCountOf(loaded) < changesMax || loaded.state.status === 'none') return false
  return settlement === 'deferred' || amount !== stillDue(loaded.state)
}

const figuresOf = (invoice: RaisedInvoice): RejectionParams => ({
  state: invoice.status,
  still_due: stillDue(invoice),
  amount_due: invoice.due,
  currency: invoice.currency,
})

const payableInvoice = async (
  ledger: Ledger,
  payment: PaymentRequest,
  tenant: string,
): Promise<RaisedInvoice | Rejection<PaymentRefusalCode>> => {
  const { aggregates, hasSiblings } = ledger
  const checked = (loaded: Loaded<KindOf<typeof invoiceEntity>> | undefined) => {
    if (!loaded || loaded.state.status === 'none' || loaded.row?.tenant_id !== tenant)
      return reject('resource_not_found')
    const refusal = refusalOf(payment, loaded.state)
    if (refusal) return reject(refusal, figuresOf(loaded.state))
    return isFull(ledger, loaded, payment) ? tooManyChanges(ledger.changesMax) : loaded.state
  }
  // The cached invoice is good enough to continue, because the invoice's stream decides in the end. A refusal is never
  // given from the cache, and nothing is where siblings may have changed the invoice a moment ago.
  const fromCache = checked(hasSiblings ? undefined : aggregates.cached(invoiceEntity, payment.invoice_id))
  return isRejection(fromCache)
    ? checked(await aggregates.loadOwn(invoiceEntity, payment.invoice_id, tenant))
    : fromCache
}

/** The command without the order, which the invoice names. `token` is the stored reference's. */
export const initiationOf = (
  { invoice_id, amount, currency, settlement, metadata, reference, idempotencyRecord }: NewPayment,
  token: string | null,
) => ({
  type: 'InitiatePayment' as const,
  ...{ invoice_id, amount, currency, reference: token, settlement, metadata },
  claim: idempotencyRecord,
  reference_stream: reference?.stream ?? null,
})
