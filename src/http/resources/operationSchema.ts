import { z } from 'zod'
import { idSchema } from '../../../streams/ids.ts'
import { resourceShape, timeSchema } from './commonSchemas.ts'

/** The representation of an operation, shared by exports, payments and replays. */

const progressSchema = z.object({
  done: z.int().min(0),
  total: z.int().min(0).nullable().meta({ description: 'Null while the total is unknown.' }),
  unit: z.enum(['rows', 'payments', 'positions']),
  rate: z.int().min(0).nullable().meta({ description: 'Average units per second.' }),
  eta_seconds: z.int().min(0).nullable(),
})

export const operationSchema = z
  .object({
    id: idSchema('op'),
    kind: z.enum(['create_payment', 'export', 'replay_subscription']),
    state: z.enum(['pending', 'running', 'succeeded', 'failed', 'cancelled', 'expired']),
    ...resourceShape,
    progress: progressSchema,
    result: z.object({ href: z.string() }).nullable(),
    error: z.looseObject({ code: z.string() }).nullable(),
    expires_at: timeSchema
      .nullable()
      .meta({ description: 'The time until which the result is kept; null if it does not expire.' }),
  })
  .meta({ id: 'Operation' })
export type OperationView = z.input<typeof operationSchema>
