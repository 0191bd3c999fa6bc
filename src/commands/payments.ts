import type { PaymentRow } from '../../projections/payments/projection.ts'
import { streamOf } from '../../streams/aggregate.ts'
import type { Annotations, Claim } from '../../streams/claim.ts'
import { isRejection, reject } from '../../streams/decider.ts'
import type { Recorded } from '../../streams/envelope.ts'
import type { PaymentId } from '../../streams/ids.ts'
import type { PaymentEvent, PaymentTerms, RefusalCode } from '../../streams/payment/index.ts'
import { Unavailable } from '../ports.ts'
import { KEY_WAIT_MS } from './budgets.ts'
import { claimIn, type Created, keyConflict, rowUntil } from './creation.ts'
import { invoiceEntity, paymentEntity, referenceEntity } from './entities.ts'
import { type Context, handle, type Ledger } from './handle.ts'
import { checkPayment, referenceIdOf } from './paymentChecks.ts'

/**
 * A payment is three streams that agree, without a transaction over them:
 *
 *   claim        payment stream, expected: no stream. Binds the key; from here on a retry finds the payment.
 *   reference    reference stream. One payment per business reference.
 *   reservation  invoice stream. The one place where two payments that race for the same amount are decided.
 *   outcome      payment stream. What every answer to this key is made from.
 *
 * Each step is idempotent by the payment's id, and each refusal is an event where it was decided. So whoever comes later
 * may drive a payment on from wherever it stopped, and any number of drivers at once come to the same end: the request
 * itself, a retry of it, and the settlement process after a crash.
 */

export type NewPayment = Omit<PaymentTerms, 'order_id'> & {
  readonly id: PaymentId
  readonly metadata: Annotations
  readonly claim: Claim
  /** How long the caller waits for the outcome, from when `pay` is called. */
  readonly waitMs: number
}

type Answer = Created<PaymentRow>

const isOutcome = (event: PaymentEvent): boolean => event.type !== 'PaymentInitiated'

/** Makes the payment, or finds what the same key made before. */
export const pay = async (ledger: Ledger, asked: NewPayment, context: Context): Promise<Answer> => {
  const payment = { ...asked, untilMs: ledger.world.monotonicMs() + asked.waitMs }
  const checked = await checkPayment(ledger, payment, context.tenant)
  if (isRejection(checked)) {
    // Nothing may be said about the payment before it is known that the key is not a repetition: that comes first.
    return (await replayOrResume(ledger, payment, context)) ?? { kind: 'refused', rejection: checked }
  }
  if (!(await waitForConcurrentClaim(ledger, payment.id))) return { kind: 'claiming' }
  ledger.world.crashPoint('before_claim')
  const { id, claim, metadata, waitMs: _, untilMs, ...terms } = payment
  const command = { type: 'InitiatePayment' as const, ...terms, order_id: checked.orderId, metadata, claim }
  const claimed = await handle(ledger, paymentEntity, id, { command, context, isNew: true })
  if (!claimed.ok || !claimed.row) {
    const answer = await replayOrResume(ledger, payment, context)
    return answer ?? { kind: 'refused', rejection: reject('concurrent_modification') }
  }
  ledger.world.crashPoint('after_claim')
  return driveOn(ledger, { id, row: claimed.row, position: claimed.position, untilMs }, context)
}

/** Waits for a request with the same key that is at its claim; false when it has not come through with it in time. */
const waitForConcurrentClaim = async ({ idle, world }: Ledger, id: PaymentId): Promise<boolean> => {
  const waited = new AbortController()
  const impatient = world.sleep(KEY_WAIT_MS, waited.signal).then(() => false)
  const free = idle(streamOf(paymentEntity.aggregate, id)).then(() => true)
  return Promise.race([free, impatient]).finally(() => waited.abort('over'))
}

/** On the monotonic clock: the caller waits for the outcome until then. */
type Patience = { readonly untilMs: number }

type Begun = {
  readonly id: PaymentId
  readonly row: PaymentRow
  readonly position: bigint
} & Patience

/**
 * The claim is durable: whoever waits no longer, or meets a part that does not answer, leaves the payment under way. It
 * goes on here, or the settlement process drives it on.
 */
const driveOn = async (ledger: Ledger, { untilMs, ...begun }: Begun, context: Context): Promise<Answer> => {
  const inProgress = { kind: 'in_progress' as const, ...begun }
  const drive = async (): Promise<Answer> => {
    const finished = await finish(ledger, begun.id, context)
    return finished ?? (await loadOutcome(ledger, begun.id)) ?? inProgress
  }
  const driven = drive().catch((error: unknown) => {
    if (error instanceof Unavailable) return inProgress
    throw error
  })
  const waited = new AbortController()
  const { world } = ledger
  const patience = world.sleep(Math.max(0, untilMs - world.monotonicMs()), waited.signal).then(() => inProgress)
  return Promise.race([driven, patience]).finally(() => waited.abort('over'))
}

/**
 * The answer to a key that was used before: its outcome, after driving the payment on if it has none yet. Undefined when
 * the key is new.
 */
const replayOrResume = async (
  ledger: Ledger,
  payment: NewPayment & Patience,
  context: Context,
): Promise<Answer | undefined> => {
  const history = await ledger.aggregates.history(paymentEntity, payment.id)
  if (history.length === 0) return undefined
  const conflict = keyConflict(ledger, payment.id, payment.claim, claimIn(history))
  if (conflict) return conflict
  const begun = rowUntil(paymentEntity, history, () => true)
  if (begun === undefined) return undefined
  const { row, last } = begun
  const recorded = outcomeIn(history)
  const { id, untilMs } = payment
  const answer = recorded ?? (await driveOn(ledger, { id, row, position: last.position, untilMs }, context))
  return asReplay(answer)
}

/** Whoever claimed the key is told the outcome first, whichever driver recorded it; everybody else gets a replay. */
const asReplay = (answer: Answer): Answer => {
  if (answer.kind === 'created') return { ...answer, kind: 'replayed' }
  return answer.kind === 'refused' ? { ...answer, replayed: true } : answer
}

/** What the payment's own stream says: the same for every retry, for ever. Undefined before there is an outcome. */
const outcomeIn = (history: readonly Recorded<PaymentEvent>[]): Answer | undefined => {
  const outcome = rowUntil(paymentEntity, history, isOutcome)
  if (outcome === undefined) return undefined
  const { row, last } = outcome
  if (last.event.type !== 'PaymentFailed') return { kind: 'created', row, position: last.position }
  const { code, held_by } = last.event.data
  const rejection = reject(code, held_by === null ? undefined : { payment_id: held_by })
  return { kind: 'refused', rejection, recordedFor: history[0]?.metadata.correlationId ?? '' }
}

const loadOutcome = async ({ aggregates }: Ledger, id: PaymentId): Promise<Answer | undefined> =>
  outcomeIn(await aggregates.history(paymentEntity, id))

type Refused = { readonly code: RefusalCode; readonly held_by: PaymentId | null }

/**
 * Drives a claimed payment to its outcome, from wherever it stands. Answers with it, or with undefined when it has to be
 * read from the payment's stream.
 */
export const finish = async (ledger: Ledger, id: PaymentId, context: Context): Promise<Answer | undefined> => {
  const { state } = ledger.aggregates.cached(paymentEntity, id) ?? (await ledger.aggregates.load(paymentEntity, id))
  if (state.status !== 'initiated') return undefined
  const refused =
    (await takeReference(ledger, id, state.terms, context)) ?? (await reserve(ledger, id, state.terms, context))
  ledger.world.crashPoint('after_reservation')
  if (refused) return refuse(ledger, id, { ...refused, terms: state.terms }, context)
  const confirmed = await handle(ledger, paymentEntity, id, { command: { type: 'ConfirmPayment' }, context })
  ledger.world.crashPoint('after_outcome')
  // Revision 1 is the outcome, whoever recorded it; the stream may have moved on since.
  if (!confirmed.ok || confirmed.row?.revision !== 1n) return undefined
  return { kind: 'created', row: confirmed.row, position: confirmed.position }
}

const takeReference = async (
  ledger: Ledger,
  payment_id: PaymentId,
  { reference }: PaymentTerms,
  context: Context,
): Promise<Refused | undefined> => {
  if (reference === null) return undefined
  const id = referenceIdOf(context.tenant, reference)
  const command = { type: 'TakeReference' as const, payment_id }
  // Whoever comes here has looked, or drives on a payment that had: as good as always the reference is nobody's yet.
  const taken = await handle(ledger, referenceEntity, id, { command, context, isNew: true })
  ledger.world.crashPoint('after_reference')
  if (!taken.ok) throw new Error(`The reference of ${payment_id} was refused without a decision.`)
  const held_by = taken.state.refused.get(payment_id)
  return held_by && { code: 'payment_reference_conflict', held_by }
}

const reserve = async (
  ledger: Ledger,
  payment_id: PaymentId,
  terms: PaymentTerms,
  context: Context,
): Promise<Refused | undefined> => {
  const { invoice_id, amount, currency, settlement } = terms
  const command = { type: 'PayInvoice' as const, payment_id, amount, currency, settlement }
  const asked = await handle(ledger, invoiceEntity, invoice_id, { command, context })
  if (!asked.ok || asked.state.status === 'none')
    throw new Error(`The invoice of ${payment_id} is not there, though it was before the claim.`)
  const part = asked.state.payments.get(payment_id)
  return part?.status === 'refused' ? { code: part.code, held_by: null } : undefined
}

const refuse = async (
  ledger: Ledger,
  id: PaymentId,
  { code, held_by, terms }: Refused & { readonly terms: PaymentTerms },
  context: Context,
): Promise<Answer | undefined> => {
  // The reference goes back first: after the outcome nobody would come by again to release it.
  if (terms.reference !== null) {
    const command = { type: 'ReleaseReference' as const, payment_id: id }
    const released = await handle(ledger, referenceEntity, referenceIdOf(context.tenant, terms.reference), {
      command,
      context,
    })
    if (!released.ok) throw new Error(`The reference of ${id} was not given back.`)
  }
  const refused = await handle(ledger, paymentEntity, id, {
    command: { type: 'RefusePayment', code, held_by },
    context,
  })
  if (!refused.ok) throw new Error(`${id} did not take its refusal.`)
  ledger.world.crashPoint('after_outcome')
  return loadOutcome(ledger, id)
}
