import { type GrowthCode, isRejection, type Rejection, type RejectionParams, reject } from '../../streams/decider.ts'
import type { PaymentId, ReferenceId } from '../../streams/ids.ts'
import { type InvoiceState, refusalOf, stillDue } from '../../streams/invoice/index.ts'
import type { PaymentTerms } from '../../streams/payment/index.ts'
import { invoiceEntity, type KindOf, referenceEntity } from './entities.ts'
import { eventCountOf, tooManyChanges } from './streamGrowth.ts'
import type { Loaded } from './aggregateRepository.ts'
import type { Ledger } from './commandHandler.ts'

/** The checks of a new payment against its invoice and its reference, before any append. */

export type PaymentRefusalCode =
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
export const checkPayment = async (
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
 * The payment that holds the reference; null unless the cache of this process shows it as taken, in which case the
 * stream is read again. A read before every payment would nearly always find the reference free, and the reference's
 * stream decides in any case, after the key is bound. With siblings the stream is read: a caller that has just used the
 * reference may be served by another process now, and its key must stay free.
 */
const holderOf = async ({ aggregates, hasSiblings }: Ledger, id: ReferenceId): Promise<PaymentId | null> => {
  const seen = hasSiblings || aggregates.cached(referenceEntity, id)?.state.holder
  if (!seen) return null
  return (await aggregates.load(referenceEntity, id)).state.holder
}

/**
 * Whether the invoice takes no further part payments, because its stream has its greatest length. A payment of all that
 * is due is always possible, because it is the last one; a deferred one is not, because it may fail and come again.
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
  // The cached invoice is good enough to go on, because the invoice's stream decides in the end. A refusal is never
  // given from the cache, and nothing is where siblings may have changed the invoice a moment ago.
  const fromCache = checked(hasSiblings ? undefined : aggregates.cached(invoiceEntity, payment.invoice_id))
  return isRejection(fromCache)
    ? checked(await aggregates.loadOwn(invoiceEntity, payment.invoice_id, tenant))
    : fromCache
}
