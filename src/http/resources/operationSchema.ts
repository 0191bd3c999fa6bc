import { z } from 'zod'
import { idSchema } from '../../../streams/ids.ts'
import { resourceShape, timeSchema } from './commonSchemas.ts'

/** The representation of an operation, shared by exports, payments and replays. */

const progressSchema = z.object({
  done: z.int().min(0),
  total: z.int().min(0).nullable().meta({ description: 'Null while it is not known.' }),
  unit: z.enum(['rows', 'payments', 'positions']),
  rate: z.int().min(0).nullable().meta({ description: 'Units per second, on average.' }),
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
    expires_at: timeSchema.nullable().meta({ description: 'What it made is kept until then; null for ever.' }),
  })
  .meta({ id: 'Operation' })
export type OperationView = z.input<typeof operationSchema>
