import { reject } from '../../streams/decider.ts'
import type { PaymentId } from '../../streams/ids.ts'
import type { PaymentCommand, PaymentTerms } from '../../streams/payment/index.ts'
import { invoiceEntity, type KindOf, paymentEntity } from './entities.ts'
import { type Context, type Handled, handle, type Ledger } from './commandHandler.ts'

type Settled = Handled<KindOf<typeof paymentEntity>>
type OutcomeCommand = Extract<PaymentCommand, { type: 'SettlePayment' | 'FailPayment' }>

/** The payment's stream accepts one verdict; the invoice follows here, or by payment recovery after a crash. */
export const settle = async (
  ledger: Ledger,
  id: PaymentId,
  command: OutcomeCommand,
  context: Context,
): Promise<Settled> => {
  if ((await ledger.aggregates.loadOwn(paymentEntity, id, context.tenant)) === undefined)
    return { ok: false, ...reject('resource_not_found') }
  const handled = await handle(ledger, paymentEntity, id, { command, context })
  if (handled.ok && handled.state.status !== 'none')
    await followSettlement(
      ledger,
      id,
      { terms: handled.state.terms, failed: handled.state.status === 'failed' },
      context,
    )
  return handled
}

/** Moves the amount on the invoice from pending to paid, or releases it. Idempotent. */
export const followSettlement = async (
  ledger: Ledger,
  payment_id: PaymentId,
  { terms, failed }: { readonly terms: PaymentTerms; readonly failed: boolean },
  context: Context,
): Promise<void> => {
  const type = failed ? 'ReleasePayment' : 'SettlePayment'
  const followed = await handle(ledger, invoiceEntity, terms.invoice_id, { command: { type, payment_id }, context })
  if (!followed.ok) throw new Error(`${terms.invoice_id} rejected the outcome of ${payment_id}.`)
}
