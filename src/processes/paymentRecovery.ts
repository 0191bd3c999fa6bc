import type { AnyEvent } from '../../streams/decider.ts'
import type { Recorded } from '../../streams/envelope.ts'
import { isId } from '../../streams/ids.ts'
import type { InvoiceEvent } from '../../streams/invoice/index.ts'
import type { PaymentEvent } from '../../streams/payment/index.ts'
import type { RefundEvent } from '../../streams/refund/index.ts'
import { PAYMENT_GRACE_MS, REQUEST_GRACE_MS } from '../commands/timeBudgets.ts'
import type { Context, Ledger } from '../commands/commandHandler.ts'
import { finish } from '../commands/payments.ts'
import { finishRefund } from '../commands/refunds.ts'
import { followSettlement } from '../commands/settlements.ts'
import { contextOf, type ProcessManager, type Task } from './processManager.ts'

type Event = PaymentEvent | InvoiceEvent | RefundEvent

/**
 * The process manager that completes payments and refunds whose request began them and did not end them: a payment without
 * outcome, a deferred outcome that the invoice does not have yet, a refund without outcome. Its name in checkpoints and in
 * the metadata of events is `settlement`.
 *
 *   begins                                  ends
 *   PaymentInitiated                        PaymentAccepted, PaymentSucceeded or PaymentFailed of the payment
 *   PaymentSucceeded, PaymentFailed         PaymentApplied or PaymentReleased on the invoice, for a deferred payment
 *   RefundInitiated                         RefundApplied on the invoice, or RefundRefused on the payment
 */
export const paymentRecovery = (ledger: Ledger): ProcessManager => ({
  name: 'settlement',
  categories: ['payment', 'invoice', 'refund'],
  begins: recorded => {
    const work = workOf(ledger, recorded)
    if (work === undefined) return undefined
    const context = () => contextOf('settlement', recorded, ledger.world)
    return { key: work.key, graceMs: work.graceMs, finish: () => work.finish(context()) } satisfies Task
  },
  ends: ({ id, event }) => keysEnded(id, event as Event),
})

type Work = Pick<Task, 'key' | 'graceMs'> & { readonly finish: (context: Context) => Promise<void> }

const workOf = (ledger: Ledger, { id, event: recorded }: Recorded<AnyEvent>): Work | undefined => {
  const event = recorded as Event
  if (event.type === 'RefundInitiated' && isId('rfd', id))
    return { key: id, graceMs: REQUEST_GRACE_MS, finish: context => finishRefund(ledger, id, event.data, context) }
  if (!isId('pay', id)) return undefined
  if (event.type === 'PaymentInitiated')
    return {
      key: `outcome/${id}`,
      graceMs: PAYMENT_GRACE_MS,
      finish: async context => {
        await finish(ledger, id, context)
      },
    }
  const isOutcome = event.type === 'PaymentSucceeded' || event.type === 'PaymentFailed'
  if (!isOutcome || event.data.settlement !== 'deferred') return undefined
  const outcome = { terms: event.data, failed: event.type === 'PaymentFailed' }
  const follow = (context: Context) => followSettlement(ledger, id, outcome, context)
  return { key: `invoice/${id}`, graceMs: REQUEST_GRACE_MS, finish: follow }
}

const keysEnded = (id: string, event: Event): string | undefined => {
  switch (event.type) {
    case 'PaymentAccepted':
    case 'PaymentSucceeded':
    case 'PaymentFailed':
      return `outcome/${id}`
    case 'PaymentApplied':
    case 'PaymentReleased':
      return `invoice/${event.data.payment_id}`
    case 'RefundApplied':
    case 'RefundRefused':
      return event.data.refund_id
    default:
      return undefined
  }
}
