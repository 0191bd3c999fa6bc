import { z } from 'zod'
import type { PaymentRow } from '../../projections/payments/projection.ts'
import { idSchema, type PaymentId, withPrefix } from '../../streams/ids.ts'
import { paymentEntity } from '../commands/entities.ts'
import { documentOf, isErrorCode, Problem } from './problem.ts'
import { readOne } from './resource.ts'
import { type AnyRoute, route } from './route.ts'
import { timeSchema } from './schemas.ts'

export const operationSchema = z
  .object({
    id: idSchema('op'),
    kind: z.enum(['create_payment']),
    state: z.enum(['pending', 'succeeded', 'failed']),
    version: z.int().min(0),
    tenant_id: z.string(),
    created_at: timeSchema,
    updated_at: timeSchema,
    created_by: z.string(),
    result: z.object({ href: z.string() }).nullable(),
    error: z.looseObject({ code: z.string() }).nullable(),
  })
  .meta({ id: 'Operation' })

/** The operation of a payment is the payment's own stream, seen as work that is under way: it has no other record. */
export const renderPaymentOperation = (row: PaymentRow): z.input<typeof operationSchema> => {
  const id = withPrefix('op', row.id as PaymentId)
  const accepted = row.revision > 0n
  const failed = row.failure_code !== null
  return {
    id,
    kind: 'create_payment',
    state: failed ? 'failed' : accepted ? 'succeeded' : 'pending',
    version: Number(row.revision),
    tenant_id: row.tenant_id,
    created_at: row.created_at,
    updated_at: row.updated_at,
    created_by: row.created_by,
    result: accepted ? { href: `/payments/${row.id}` } : null,
    error: row.failure_code === null ? null : errorOf(row.failure_code, `/operations/${id}`),
  }
}

const errorOf = (code: string, instance: string) =>
  isErrorCode(code) ? { ...documentOf(new Problem(code), { instance, correlationId: '' }) } : { code }

const readOperation = route({
  method: 'GET',
  path: '/operations/{id}',
  operationId: 'read_operation',
  summary: 'Read work that was accepted',
  tag: 'Operations',
  scope: 'payments:read',
  rateClass: 'default',
  params: z.object({ id: idSchema('op') }),
  responses: {
    200: { description: 'The operation.', schema: operationSchema, headers: ['ETag'] },
    304: { description: 'You have it already.', headers: ['ETag'] },
  },
  errors: ['precondition_invalid'],
  handle: call => readOne(call, paymentEntity, withPrefix('pay', call.params.id), renderPaymentOperation),
})

export const operationRoutes: readonly AnyRoute[] = [readOperation]
