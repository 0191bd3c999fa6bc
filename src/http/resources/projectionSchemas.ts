import { z } from 'zod'
import { REBUILD_KINDS, REBUILD_STATES, type RebuildRow } from '../../feeds/rebuild/requests.ts'
import { textSchema, timeSchema } from './commonSchemas.ts'

const differenceSchema = z.object({
  table: z.string(),
  key: z
    .string()
    .nullable()
    .meta({ description: 'The primary key of the row; null where the tables themselves differ.' }),
  tenant_id: z.string().nullable(),
  column: z.string().nullable().meta({ description: 'Null where one side has no such row.' }),
  live: z.string().nullable(),
  rebuilt: z.string().nullable(),
  rows: z.int().min(0).meta({ description: 'The number of rows of the table that differ.' }),
})

const paritySchema = z.object({
  position: z.string().meta({ description: 'The position of the log at which both were compared.' }),
  tables: z.array(
    z.object({
      table: z.string(),
      tenants: z.int().min(0),
      rows: z.int().min(0),
      checksum: z.string().meta({ description: 'Equal for equal rows, whatever their order.' }),
    }),
  ),
})

export const rebuildSchema = z
  .object({
    id: z.string().meta({ description: 'The id of the operation.' }),
    kind: z.enum(REBUILD_KINDS),
    projection: z.string(),
    state: z.enum(REBUILD_STATES).meta({
      description: 'refused: the rebuilt rows differ, the live tables stay, and the rebuilt ones wait for a decision.',
    }),
    progress: z.object({
      done: z.int().min(0),
      total: z.int().min(0).nullable().meta({ description: 'An estimate; null while it is unknown.' }),
      unit: z.literal('events'),
      rate: z.int().min(0).nullable().meta({ description: 'Average units per second.' }),
      eta_seconds: z.int().min(0).nullable(),
    }),
    parity: paritySchema.nullable().meta({ description: 'Null before the comparison.' }),
    difference: differenceSchema.nullable().meta({ description: 'The first difference; null if there is none.' }),
    accepted_reason: z.string().nullable(),
    error: z.string().nullable(),
    requested_by: z.string(),
    requested_at: timeSchema,
    ended_at: timeSchema.nullable(),
  })
  .meta({ id: 'ProjectionRebuild' })

const numberOf = (value: bigint | null): number | null => (value === null ? null : Number(value))

export const rebuildView = (row: RebuildRow): z.input<typeof rebuildSchema> => {
  const { done, total, rate, eta_seconds, parity, prepared: _prepared, position: _position, ...others } = row
  return {
    ...others,
    parity: parity && { ...parity, tables: [...parity.tables] },
    progress: {
      done: Number(done),
      total: numberOf(total),
      unit: 'events',
      rate: numberOf(rate),
      eta_seconds: numberOf(eta_seconds),
    },
  }
}

export const projectionSchema = z
  .object({
    name: z.string(),
    position: z.string().nullable().meta({ description: 'The position of the log up to which it has every event.' }),
    lag: z.object({
      events: z.int().min(0).meta({ description: 'The events that it lacks; counted up to 1000.' }),
      seconds: z.int().min(0).meta({ description: 'The age of the oldest event that it lacks.' }),
    }),
    parked_events: z.int().min(0).meta({ description: 'Events that wait for an operator: ledger dead-letters.' }),
    previous_position: z.string().nullable().meta({
      description: 'The position of the replaced tables, which a roll-back continues; null if none are kept.',
    }),
    rebuild: rebuildSchema.nullable().meta({ description: 'The newest rebuild.' }),
  })
  .meta({ id: 'Projection' })

export const rebuildRequest = z
  .strictObject({
    accept_differences: z
      .boolean()
      .default(false)
      .meta({ description: 'Switches the tables of the newest rebuild, which was refused.' }),
    reason: textSchema.optional().meta({ description: 'Required to accept differences.' }),
  })
  .refine(({ accept_differences, reason }) => !accept_differences || reason !== undefined, {
    message: 'A reason is required to accept differences.',
    path: ['reason'],
  })
  .default({ accept_differences: false })
