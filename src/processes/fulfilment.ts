import type { AnyEvent } from '../../streams/decider.ts'
import type { Recorded } from '../../streams/envelope.ts'
import { type InvoiceId, isId, type OrderId } from '../../streams/ids.ts'
import type { InvoiceEvent } from '../../streams/invoice/index.ts'
import type { OrderCommand, OrderEvent } from '../../streams/order/index.ts'
import { REQUEST_GRACE_MS } from './recoveryTimes.ts'
import { orderEntity } from '../commands/entities.ts'
import { handle, type Ledger } from '../commands/commandHandler.ts'
import { raiseFromTerms } from '../commands/invoices.ts'
import { contextOf, type ProcessManager, type Task } from './processManager.ts'

/** Raises the invoice of an invoiced order, completes the order when that is paid, and reopens it when it is voided. */
export const fulfilment = (ledger: Ledger): ProcessManager => {
  /** No event ends this task (see `ends`): it is due at once, and ends when the order has accepted the command. */
  const commandOrder = (recorded: Recorded<AnyEvent>, orderId: OrderId, command: OrderCommand): Task => ({
    key: `${command.type}/${orderId}/${recorded.id}`,
    graceMs: 0,
    finish: async () => {
      const context = contextOf('fulfilment', recorded, ledger.world)
      const handled = await handle(ledger, orderEntity, orderId, { command, context })
      if (!handled.ok) throw new Error(`${orderId} refused ${command.type}.`)
    },
  })
  return {
    name: 'fulfilment',
    categories: ['order', 'invoice'],
    begins: recorded => {
      const event = recorded.event as OrderEvent | InvoiceEvent
      const { id } = recorded
      if (event.type === 'OrderInvoiced' && isId('ord', id))
        return {
          key: event.data.invoice_id,
          // The request that invoices an order raises the invoice itself, unless its process ended before that.
          graceMs: REQUEST_GRACE_MS,
          finish: async () => {
            await raiseFromTerms(ledger, id, event.data, contextOf('fulfilment', recorded, ledger.world))
          },
        }
      const invoice_id = id as InvoiceId
      if (event.type === 'InvoicePaid')
        return commandOrder(recorded, event.data.order_id, { type: 'CompleteOrder', invoice_id })
      if (event.type === 'InvoiceVoided')
        return commandOrder(recorded, event.data.order_id, { type: 'ReopenOrder', invoice_id })
      return undefined
    },
    ends: ({ id, event }) => (event.type === 'InvoiceRaised' ? id : undefined),
  }
}
