import type { AnyEvent } from '../../streams/decider.ts'
import type { Recorded } from '../../streams/envelope.ts'
import { isId } from '../../streams/ids.ts'
import type { InvoiceEvent } from '../../streams/invoice/index.ts'
import type { PaymentEvent } from '../../streams/payment/index.ts'
import type { RefundEvent } from '../../streams/refund/index.ts'
import { PAYMENT_GRACE_MS, REQUEST_GRACE_MS } from './recoveryTimes.ts'
import type { Context, Ledger } from '../commands/commandHandler.ts'
import { finishPayment } from '../commands/payments.ts'
import { finishRefund } from '../commands/refunds.ts'
import { followSettlement } from '../commands/settlements.ts'
import { contextOf, type ProcessManager, type Task } from './processManager.ts'

/**
 * The process manager that completes payments and refunds whose request began them and did not end them: a payment
 * without outcome, a deferred outcome that the invoice does not have yet, a refund without outcome.
 *
 *   begins                                      ends
 *   PaymentInitiated                            PaymentAccepted, PaymentSucceeded or PaymentFailed of the payment
 *   PaymentSucceeded, PaymentFailed (deferred)  PaymentApplied or PaymentReleased on the invoice
 *   RefundInitiated                             RefundApplied on the invoice, or RefundRefused on the payment
 *
 * The times of its looks and retries are in recoveryTimes.ts.
 */
export const paymentRecovery = (ledger: Ledger): ProcessManager => ({
  name: STORED_NAME,
  categories: ['payment', 'invoice', 'refund'],
  begins: recorded => {
    const work = workOf(ledger, recorded)
    if (work === undefined) return undefined
    const context = () => contextOf(STORED_NAME, recorded, ledger.world)
    return { key: work.key, graceMs: work.graceMs, finish: () => work.finish(context()) } satisfies Task
  },
  ends: ({ id, event }) => keyEnded(id, event as Event),
})

type Event = PaymentEvent | InvoiceEvent | RefundEvent

/** The name in checkpoints and in the metadata of stored events, so it cannot change. */
const STORED_NAME = 'settlement'

type Work = Pick<Task, 'key' | 'graceMs'> & { readonly finish: (context: Context) => Promise<void> }

const workOf = (ledger: Ledger, { id, event: anyEvent }: Recorded<AnyEvent>): Work | undefined => {
  const event = anyEvent as Event
  if (event.type === 'RefundInitiated' && isId('rfd', id))
    return { key: id, graceMs: REQUEST_GRACE_MS, finish: context => finishRefund(ledger, id, event.data, context) }
  if (!isId('pay', id)) return undefined
  if (event.type === 'PaymentInitiated')
    return {
      key: `outcome/${id}`,
      graceMs: PAYMENT_GRACE_MS,
      finish: async context => {
        await finishPayment(ledger, id, context)
      },
    }
  const isOutcome = event.type === 'PaymentSucceeded' || event.type === 'PaymentFailed'
  if (!isOutcome || event.data.settlement !== 'deferred') return undefined
  const outcome = { terms: event.data, failed: event.type === 'PaymentFailed' }
  const follow = (context: Context) => followSettlement(ledger, id, outcome, context)
  return { key: `invoice/${id}`, graceMs: REQUEST_GRACE_MS, finish: follow }
}

const keyEnded = (id: string, event: Event): string | undefined => {
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
