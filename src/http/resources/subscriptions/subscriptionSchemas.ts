import { createHash } from 'node:crypto'
import { z } from 'zod'
import { reasonForTenant } from '../../../../projections/parkedReasons.ts'
import { resourceView } from '../../../../projections/projection.ts'
import type { SubscriptionRow } from '../../../../projections/subscriptions/projection.ts'
import { type DeadLetterRow, type DeliveryStatus, LAG_MAX } from '../../../../projections/subscriptions/queries.ts'
import { FACT_TYPES, type FactType } from '../../../../streams/facts.ts'
import { idSchema, type SubscriptionId } from '../../../../streams/ids.ts'
import { topicNamesOf } from '../../../commands/subscriptionTopicNames.ts'
import type { ReadScope } from '../../../identity/principal.ts'
import { metadataSchema, positionSchema, resourceShape, timeSchema } from '../commonSchemas.ts'

/** The request and response schemas of subscriptions. */

/** The scope that a subscriber to a fact needs. Manifests belong to the system tenant: undefined. */
const SCOPE_OF = {
  'order.created': 'orders:read',
  'order.cancelled': 'orders:read',
  'invoice.approved': 'invoices:read',
  'invoice.paid': 'invoices:read',
  'invoice.voided': 'invoices:read',
  'payment.succeeded': 'payments:read',
  'payment.failed': 'payments:read',
  'payment.refunded': 'payments:read',
  'export.completed': 'exports:read',
  'ledger.manifest': undefined,
} as const satisfies Readonly<Record<FactType, ReadScope | undefined>>
type SubscribableType = Exclude<FactType, 'ledger.manifest'>

export const SUBSCRIBABLE_TYPES = FACT_TYPES.filter((type): type is SubscribableType => SCOPE_OF[type] !== undefined)

/** The scopes that a subscriber to these types needs, at creation and during delivery. */
export const scopesFor = (types: readonly string[]) => [
  'events:subscribe',
  ...new Set(SUBSCRIBABLE_TYPES.filter(type => types.includes(type)).map(type => SCOPE_OF[type])),
]

const typeSchema = z.enum(SUBSCRIBABLE_TYPES as [SubscribableType, ...SubscribableType[]])

const fromPosition = z.strictObject({ position: positionSchema }).meta({ description: 'Facts at it and behind it.' })
const fromTime = z.strictObject({ time: timeSchema }).meta({ description: 'Facts that were decided then or later.' })

/** The name of a Kafka user; excludes the wildcard principal. */
const PRINCIPAL = /^[A-Za-z0-9][A-Za-z0-9._@-]{0,99}$/

export const newSubscription = z
  .strictObject({
    types: z
      .array(typeSchema)
      .min(1)
      .refine(types => new Set(types).size === types.length, { message: 'Each type once.' })
      .meta({ description: 'Each needs the read scope of its resource.', uniqueItems: true }),
    start: z.union([z.enum(['beginning', 'now']), fromPosition, fromTime]),
    principal: z
      .string()
      .regex(PRINCIPAL)
      .nullable()
      .default(null)
      .meta({ description: 'The Kafka user who reads the topic, where the broker asks who reads.' }),
    metadata: metadataSchema.default({}),
  })
  .meta({ id: 'NewSubscription' })

export const newReplay = z
  .strictObject({ from: z.union([z.literal('beginning'), fromPosition, fromTime]) })
  .meta({ id: 'NewReplay' })

export type Start = z.output<typeof newSubscription>['start']

export const subscriptionSchema = z
  .object({
    id: idSchema('sub'),
    state: z.enum(['active', 'paused', 'stopped']),
    ...resourceShape,
    types: z.array(typeSchema),
    topic: z.string().meta({ description: 'In Kafka: your facts, as in the topics of analysts, byte by byte.' }),
    dead_letter_topic: z.string().meta({ description: 'In Kafka: what could not be delivered, and why.' }),
    principal: z.string().nullable(),
    acl: z.enum(['pending', 'granted', 'not_enforced', 'none']).meta({
      description:
        'granted: its principal, and no one else, reads the topic, in groups that begin with its name; not_enforced: the ' +
        'broker does not ask who reads; none: it has no principal; pending: there is no topic yet, or the right was taken away.',
    }),
    position: z.string().meta({ description: 'Everything up to this position of the log is delivered, or parked.' }),
    lag: z
      .int()
      .min(0)
      .max(LAG_MAX)
      .nullable()
      .meta({ description: `Facts that wait; ${LAG_MAX} stands for that many or more. Null when not counted.` }),
    parked: z.int().min(0).meta({ description: 'Facts that wait for an operator: its dead letters.' }),
    stop_reason: z
      .string()
      .nullable()
      .meta({
        description: 'Why it was stopped: tenant_suspended, scope_revoked. Others may come.',
        examples: ['scope_revoked'],
      }),
  })
  .meta({ id: 'Subscription' })
type SubscriptionView = z.input<typeof subscriptionSchema>

const shownPosition = (position: bigint): string => (position < 0n ? 0n : position).toString()

/** The subscription with its delivery status; without a status, as it was when it was created. */
export const subscriptionView = (row: SubscriptionRow, status?: DeliveryStatus): SubscriptionView => {
  const { topic, deadLetterTopic } = topicNamesOf(row.id)
  return {
    id: row.id as SubscriptionId,
    state: row.state as SubscriptionView['state'],
    ...resourceView(row),
    types: SUBSCRIBABLE_TYPES.filter(type => row.types.includes(type)),
    topic,
    dead_letter_topic: deadLetterTopic,
    principal: row.principal,
    acl: row.principal === null ? 'none' : (status?.acl ?? 'pending'),
    position: shownPosition(status?.position ?? row.from_position - 1n),
    lag: status === undefined ? null : Number(status.lag),
    parked: Number(status?.parked ?? 0),
    stop_reason: row.stop_reason,
  }
}

const TICK_BYTES = 6
/** The part of an entity tag that changes with the view, for members that change without an event. */
export const tickOf = (view: object): number =>
  createHash('sha256').update(JSON.stringify(view)).digest().readUIntBE(0, TICK_BYTES)

export const deadLetterSchema = z
  .object({
    id: z.uuid().meta({ description: 'Of the fact.' }),
    type: z.string(),
    subject: z.string().meta({ description: 'Its key: later facts of it wait, too.' }),
    position: z.string(),
    reason: z.string(),
    attempts: z.int().min(0).meta({ description: 'Zero for a fact that only waits behind another one of its key.' }),
    first_failed_at: timeSchema,
  })
  .meta({ id: 'DeadLetter' })

export const deadLetterView = (row: DeadLetterRow): z.input<typeof deadLetterSchema> => ({
  id: row.event_id,
  type: row.type,
  subject: row.key,
  position: row.position.toString(),
  reason: reasonForTenant(row.reason),
  attempts: row.attempts,
  first_failed_at: row.first_failed_at,
})
