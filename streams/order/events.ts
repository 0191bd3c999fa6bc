import { z } from 'zod'
import { annotationsSchema, idempotencyRecordSchema } from '../idempotencyRecord.ts'
import type { EventOf } from '../codec.ts'
import { idSchema } from '../ids.ts'
import { minorUnits } from '../money.ts'

export const lineSchema = z.object({
  sku: z.string(),
  description: z.string().nullable(),
  quantity: z.int(),
  unit_amount: minorUnits,
})
export type Line = z.output<typeof lineSchema>

/** The terms of the invoice, decided together with the order's change to `invoiced`. */
const invoiceTermsSchema = z.object({
  invoice_id: idSchema('inv'),
  amount_due: minorUnits,
  currency: z.string(),
  due_date: z.string(),
  metadata: annotationsSchema,
  claim: idempotencyRecordSchema.nullable(),
})

export const orderEvents = {
  OrderCreated: z.object({
    /** A token (src/personalTexts/personalTexts.ts). */
    customer_reference: z.string().nullable(),
    description: z.string().nullable(),
    currency: z.string(),
    lines: z.array(lineSchema),
    total_amount: minorUnits,
    metadata: annotationsSchema,
    claim: idempotencyRecordSchema.nullable(),
  }),
  /** Only what changed is present; `null` is a value, absence means unchanged. */
  OrderChanged: z.object({
    customer_reference: z.string().nullable().optional(),
    description: z.string().nullable().optional(),
    metadata: annotationsSchema.optional(),
    lines: z.array(lineSchema).optional(),
    total_amount: minorUnits.optional(),
  }),
  OrderInvoiced: invoiceTermsSchema,
  /**
   * The key was bound already, so a repetition of the request is refused in the same way, also if the order is open
   * again.
   */
  OrderInvoiceRefused: z.object({
    invoice_id: idSchema('inv'),
    code: z.enum(['order_has_invoices', 'order_state_conflict']),
  }),
  /** The order's invoice was voided: another one may be raised. */
  OrderReopened: z.object({ invoice_id: idSchema('inv') }),
  OrderCompleted: z.object({ invoice_id: idSchema('inv') }),
  OrderCancelled: z.object({ reason: z.string().nullable(), currency: z.string(), total_amount: minorUnits }),
  OrderDeleted: z.object({}),
}
export type OrderEvent = EventOf<typeof orderEvents>
export type InvoiceTerms = z.output<typeof invoiceTermsSchema>
