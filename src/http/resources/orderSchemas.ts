import { z } from 'zod'
import type { OrderRow } from '../../../projections/orders/projection.ts'
import { orderView } from '../../../projections/orders/queries.ts'
import { idSchema } from '../../../streams/ids.ts'
import { AMOUNT_MAX } from '../../../streams/money.ts'
import {
  amountSchema,
  currencySchema,
  exponentSchema,
  metadataPatchSchema,
  metadataSchema,
  resourceShape,
  textSchema,
} from './commonSchemas.ts'
import { createdQuery } from './paging.ts'

const LINES_MAX = 200
const QUANTITY_MAX = 1_000_000

const newLine = z.strictObject({
  sku: textSchema,
  description: textSchema.nullable().default(null),
  quantity: z.int().min(1).max(QUANTITY_MAX),
  unit_amount: amountSchema,
})

const newLines = z
  .array(newLine)
  .min(1)
  .max(LINES_MAX)
  .refine(lines => totalOf(lines) <= AMOUNT_MAX, {
    message: `The lines add up to more than ${AMOUNT_MAX}, the maximum.`,
  })

const totalOf = (lines: readonly { quantity: number; unit_amount: number }[]): bigint =>
  lines.reduce((sum, { quantity, unit_amount }) => sum + BigInt(quantity) * BigInt(unit_amount), 0n)

export const newOrder = z
  .strictObject({
    customer_reference: textSchema.nullable().default(null),
    description: textSchema.nullable().default(null),
    currency: currencySchema,
    lines: newLines,
    metadata: metadataSchema.default({}),
  })
  .meta({ id: 'NewOrder' })

export const orderSchema = z
  .object({
    id: idSchema('ord'),
    state: z.enum(['open', 'invoiced', 'completed', 'cancelled']),
    ...resourceShape,
    customer_reference: z
      .string()
      .nullable()
      .meta({ description: 'Also null after an operator has erased it, which changes the ETag.' }),
    description: z.string().nullable(),
    currency: currencySchema,
    exponent: exponentSchema,
    lines: z.array(
      z.object({
        sku: z.string(),
        description: z.string().nullable(),
        quantity: z.int(),
        unit_amount: amountSchema,
      }),
    ),
    total_amount: amountSchema,
  })
  .meta({ id: 'Order' })

export const orderFilters = {
  ...createdQuery,
  state: orderSchema.shape.state.optional(),
  currency: currencySchema.optional(),
}

export const render: (row: OrderRow) => z.input<typeof orderSchema> = orderView

export const storedLines = (lines: z.output<typeof newLines>) =>
  lines.map(line => ({ ...line, unit_amount: BigInt(line.unit_amount) }))

// A null member is removed (RFC 7396), so a nullable member becomes null. Lines cannot be removed.
export const orderPatch = z
  .strictObject({
    customer_reference: textSchema.nullable().optional(),
    description: textSchema.nullable().optional(),
    lines: newLines.optional(),
    metadata: metadataPatchSchema.nullable().optional(),
  })
  .meta({ id: 'OrderPatch' })
