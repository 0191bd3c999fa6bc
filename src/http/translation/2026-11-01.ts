import { z } from 'zod'
import { amountSchema, textSchema } from '../resources/commonSchemas.ts'
import { pageSchema } from '../resources/paging.ts'
import { invoiceSchema } from '../resources/invoices.ts'
import { itemsDown, type Translator, withRequest, withResponse } from './changes.ts'

/**
 * The contract of 2026-11-01, as its differences from that of 2026-11-22:
 *
 * - An invoice has `amount_due` for its `total_amount`, and no `amount_outstanding`.
 * - A refund without an amount gives back all that is left; later this is said with `"remaining"`.
 */

type Members = Readonly<Record<string, unknown>>

/** The members of an invoice, or the schemas of its members, by their older names and in the same order. */
const olderNames = (members: Members): Record<string, unknown> => {
  const older: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(members)) {
    if (name === 'amount_outstanding') continue
    older[name === 'total_amount' ? 'amount_due' : name] = value
  }
  return older
}

const olderInvoice = z.object(olderNames(invoiceSchema.shape) as z.ZodRawShape).meta({ id: 'Invoice' })

const answersInvoice = (status: number) => withResponse({ status, schema: olderInvoice, down: olderNames })

const olderRefund = z.strictObject({
  amount: amountSchema
    .optional()
    .meta({ description: 'The amount to refund; by default the whole amount that is not yet refunded.' }),
  reason: textSchema,
})

export const translator: Translator = {
  raise_invoice: answersInvoice(201),
  read_invoice: answersInvoice(200),
  approve_invoice: answersInvoice(200),
  void_invoice: answersInvoice(200),
  list_invoices: withResponse({ status: 200, schema: pageSchema(olderInvoice), down: itemsDown(olderNames) }),
  refund_payment: withRequest({
    schema: olderRefund,
    up: ({ amount = 'remaining', ...others }) => ({ ...others, amount }),
  }),
}
