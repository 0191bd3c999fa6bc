import { isRejection, type Rejection, reject } from '../../streams/decider.ts'
import type { PaymentId, ReferenceId } from '../../streams/ids.ts'
import { type InvoiceState, refusalOf, stillDue } from '../../streams/invoice/index.ts'
import type { PaymentTerms } from '../../streams/payment/index.ts'
import { invoiceEntity, referenceEntity } from './entities.ts'
import type { Ledger } from './commandHandler.ts'
import { derivedId } from './identifiers.ts'

/** The checks of a new payment against its invoice and its reference, before any append. */

export type PaymentRefusalCode =
  | 'resource_not_found'
  | 'payment_not_allowed'
  | 'payment_exceeds_due'
  | 'payment_reference_conflict'
  | 'payment_state_conflict'
  | 'concurrent_modification'

type Asked = Omit<PaymentTerms, 'order_id'> & {
  readonly id: PaymentId
  /** The stream of the reference, where the log has tokens of references. */
  readonly referenceStream?: ReferenceId | undefined
}
type RaisedInvoice = Exclude<InvoiceState, { status: 'none' }>

/**
 * The stream in which the reference is unique; null without a reference. Logs of earlier builds have the text in its
 * place.
 */
export const referenceIdOf = (
  tenant: string,
  { reference, referenceStream }: Pick<Asked, 'reference' | 'referenceStream'>,
): ReferenceId | null => {
  if (reference === null) return null
  return referenceStream ?? derivedId('ref', tenant, reference)
}

/** Checks that refuse before any durable effect. The invoice's stream makes the final decision on the amount. */
export const checkPayment = async (
  ledger: Ledger,
  payment: Asked,
  tenant: string,
): Promise<RaisedInvoice | Rejection<PaymentRefusalCode>> => {
  const reference = referenceIdOf(tenant, payment)
  const [invoice, holder] = await Promise.all([
    payableInvoice(ledger, payment, tenant),
    reference === null ? null : holderOf(ledger, reference),
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

const payableInvoice = async (
  { aggregates, hasSiblings }: Ledger,
  payment: Asked,
  tenant: string,
): Promise<RaisedInvoice | Rejection<PaymentRefusalCode>> => {
  const checked = (loaded: { state: InvoiceState; row: { tenant_id: string } | undefined } | undefined) => {
    if (!loaded || loaded.state.status === 'none' || loaded.row?.tenant_id !== tenant)
      return reject('resource_not_found')
    const refusal = refusalOf(payment, loaded.state)
    return refusal ? reject(refusal, { still_due: stillDue(loaded.state) }) : loaded.state
  }
  // The cached invoice is good enough to go on, because the invoice's stream decides in the end. A refusal is never
  // given from the cache, and nothing is where siblings may have changed the invoice a moment ago.
  const fromCache = checked(hasSiblings ? undefined : aggregates.cached(invoiceEntity, payment.invoice_id))
  return isRejection(fromCache) ? checked(await aggregates.load(invoiceEntity, payment.invoice_id)) : fromCache
}
