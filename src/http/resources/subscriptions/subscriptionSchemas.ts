import { createHash } from 'node:crypto'
import { z } from 'zod'
import { reasonForTenant } from '../../../../projections/deadLetterReasons.ts'
import { resourceView } from '../../../../projections/projection.ts'
import type { SubscriptionRow } from '../../../../projections/subscriptions/projection.ts'
import {
  type DeadLetterRow,
  type DeliveryStatus,
  LAG_MAX,
  PARKED_MAX,
} from '../../../../projections/subscriptions/queries.ts'
import { idSchema, type SubscriptionId } from '../../../../streams/ids.ts'
import { confirmByMs } from '../../../commands/subscriptions/confirmation.ts'
import { topicNamesOf } from '../../../commands/subscriptions/topicNames.ts'
import { scopesOfFacts, TENANT_FACT_TYPES, type TenantFactType } from '../../../identity/resourceScopes.ts'
import { positionSchema } from '../../request/position.ts'
import { metadataSchema, resourceShape, textSchema, timeParameter, timeSchema } from '../commonSchemas.ts'

export const SUBSCRIBABLE_TYPES = TENANT_FACT_TYPES

/** The scopes that a subscriber to these types needs, at creation and during delivery. */
export const scopesFor = (types: readonly string[]) => ['events:subscribe', ...scopesOfFacts(types)]

const typeSchema = z.enum(SUBSCRIBABLE_TYPES as [TenantFactType, ...TenantFactType[]])

const fromPosition = z
  .strictObject({ position: positionSchema })
  .meta({ description: 'Start with the facts at this position and later ones.' })
const fromTime = z
  .strictObject({ time: timeParameter })
  .meta({ description: 'Start with the facts of this time and later ones.' })

/** The name of a Kafka user; excludes the wildcard principal. */
const PRINCIPAL = /^[A-Za-z0-9][A-Za-z0-9._@-]{0,99}$/

export const newSubscription = z
  .strictObject({
    types: z
      .array(typeSchema)
      .min(1)
      .refine(types => new Set(types).size === types.length, { message: 'Name each type only once.' })
      .meta({ description: 'The types of fact; each requires the read scope of its resource.', uniqueItems: true }),
    start: z.union([z.enum(['beginning', 'now']), fromPosition, fromTime]),
    principal: z
      .string()
      .regex(PRINCIPAL, 'Must be the name of a Kafka user: at most 100 characters of A-Z, a-z, 0-9 and . _ @ -.')
      .nullable()
      .default(null)
      .meta({ description: 'The Kafka user that is granted access to the topic, if the broker has an authorizer.' }),
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
    topic: z.string().meta({ description: 'The Kafka topic of the facts, byte for byte those of the public topics.' }),
    dead_letter_topic: z
      .string()
      .meta({ description: 'The Kafka topic of the facts that could not be delivered, with the reasons.' }),
    principal: z.string().nullable(),
    acl: z.enum(['pending', 'granted', 'not_enforced', 'none']).meta({
      description:
        'granted: only the principal reads the topic, in consumer groups whose names begin with the name of the topic; ' +
        'not_enforced: the broker has no authorizer; none: there is no principal; pending: there is no topic yet, or access was withdrawn.',
    }),
    position: z.string().meta({ description: 'Every fact up to this position of the log is delivered or parked.' }),
    lag: z
      .int()
      .min(0)
      .max(LAG_MAX)
      .nullable()
      .meta({
        description: `The number of facts that are not yet delivered; ${LAG_MAX} means that many or more. Null if not counted.`,
      }),
    parked: z
      .int()
      .min(0)
      .meta({
        description: `The number of dead letters, which wait for an operator; ${PARKED_MAX} means that many or more.`,
      }),
    stop_reason: z
      .string()
      .nullable()
      .meta({
        description:
          'The reason of the stop: tenant_suspended, scope_revoked, creator_not_seen. Other values may be added.',
        examples: ['scope_revoked'],
      }),
    confirm_by: timeSchema.nullable().meta({
      description:
        'The subscription is stopped at this time (creator_not_seen) unless its creator sends any request with a valid ' +
        'credential before. :resume confirms it too. Null until the delivery has begun.',
    }),
  })
  .meta({ id: 'Subscription' })
type SubscriptionView = z.input<typeof subscriptionSchema>

const shownPosition = (position: bigint): string => (position < 0n ? 0n : position).toString()

const confirmBy = (seenOn: string, confirmationMs: number): string =>
  new Date(confirmByMs(seenOn, confirmationMs)).toISOString()

/** The subscription with its delivery status; without a status, as it was when it was created. */
export const subscriptionView = (
  row: SubscriptionRow,
  status?: DeliveryStatus,
  confirmationMs?: number,
): SubscriptionView => {
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
    confirm_by: status?.seen_on && confirmationMs ? confirmBy(status.seen_on, confirmationMs) : null,
  }
}

const TICK_BYTES = 6
/** The part of an entity tag that changes with the view, for members that change without an event. */
export const tickOf = (view: object): number =>
  createHash('sha256').update(JSON.stringify(view)).digest().readUIntBE(0, TICK_BYTES)

export const deadLetterSchema = z
  .object({
    id: z.uuid().meta({ description: 'The id of the fact.' }),
    type: z.string(),
    subject: z.string().meta({ description: 'The key of the fact; later facts of the same key wait, too.' }),
    position: z.string(),
    reason: z.string(),
    attempts: z
      .int()
      .min(0)
      .meta({ description: 'The number of attempts; zero for a fact that only waits behind another one of its key.' }),
    first_failed_at: timeSchema,
    requested: z
      .enum(['replay', 'discard'])
      .nullable()
      .meta({ description: 'What was asked for and is not carried out yet; null for nothing.' }),
  })
  .meta({ id: 'DeadLetter' })

const ofKey = {
  subject: textSchema.meta({ description: 'The key of the dead letters, as the list names it.' }),
  reason: textSchema.meta({ description: 'Why; the audit record has it.' }),
}
export const replayRequest = z.strictObject(ofKey).meta({ id: 'DeadLetterReplay' })
export const discardRequest = z.strictObject({
  ...ofKey,
  position: positionSchema.optional().meta({ description: 'Of the only fact to discard; all of the key when absent.' }),
})

export const deadLetterRequestSchema = z
  .object({
    subject: z.string(),
    requested: z.enum(['replay', 'discard']).meta({ description: 'What was asked for.' }),
    facts: z.int().min(0).meta({ description: 'The number of dead letters that this concerns.' }),
  })
  .meta({ id: 'DeadLetterRequest' })

export const deadLetterView = (row: DeadLetterRow): z.input<typeof deadLetterSchema> => ({
  id: row.event_id,
  type: row.type,
  subject: row.key,
  position: row.position.toString(),
  reason: reasonForTenant(row.reason),
  attempts: row.attempts,
  first_failed_at: row.first_failed_at,
  requested: row.requested,
})
