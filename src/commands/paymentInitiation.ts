import type { Annotations, IdempotencyRecord } from '../../streams/idempotencyRecord.ts'
import type { PaymentId, ReferenceId } from '../../streams/ids.ts'
import type { PaymentTerms } from '../../streams/payment/index.ts'

/** A payment as it is requested, and the command that initiates it. */

/**
 * A reference that is a personal text (personalTexts.ts). It is stored when the checks have passed, before the
 * initiation.
 */
export type PersonalReference = {
  readonly stream: ReferenceId
  /**
   * Stores the text, unless the key or the reference is found to be used: `answer` is called where storing may be
   * wrong.
   */
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

/** The command without the order, which the invoice names. `token`: that of the stored reference. */
export const initiationOf = (
  { invoice_id, amount, currency, settlement, metadata, reference, idempotencyRecord }: NewPayment,
  token: string | null,
) => ({
  type: 'InitiatePayment' as const,
  ...{ invoice_id, amount, currency, reference: token, settlement, metadata },
  claim: idempotencyRecord,
  reference_stream: reference?.stream ?? null,
})
