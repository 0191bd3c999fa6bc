import { z } from 'zod'
import type { IdempotencyRecord } from '../../../../streams/idempotencyRecord.ts'
import type { Recorded } from '../../../../streams/envelope.ts'
import { idSchema, type SubscriptionId } from '../../../../streams/ids.ts'
import type { SubscriptionEvent } from '../../../../streams/subscription/index.ts'
import { keyConflict } from '../../../commands/idempotencyKeyConflicts.ts'
import { subscriptionEntity } from '../../../commands/entities.ts'
import { replayIdOf } from '../../../commands/subscriptionIds.ts'
import { positionOf } from '../../../feeds/checkpoints.ts'
import { Unavailable } from '../../../ports.ts'
import { etagOf } from '../../request/conditional.ts'
import { bindKeyOf, idempotencyRecordIfKeyed } from '../../request/idempotencyKey.ts'
import { operationSchema } from '../operationSchema.ts'
import { initialReplayView, type Replayed } from './replayView.ts'
import { problemOfKeyConflict } from '../../response/rejectionDetails.ts'
import { type AnyRoute, type Call, type Reply, route } from '../../route.ts'
import { executeCommand, permitDelivery, deliveryStartOf } from './subscriptionCommands.ts'
import { newReplay } from './subscriptionSchemas.ts'

/** POST /subscriptions/{id}:replay: delivers facts again from an earlier position. */

type ById = Call<{ id: SubscriptionId }, unknown, unknown>

/** The replay that this call created, or that the first request with its key created. */
const replayedBy = async (
  { ledger, params, context }: ById,
  idempotencyRecord: IdempotencyRecord | null,
): Promise<Replayed> => {
  const isIt = (recorded: Recorded<SubscriptionEvent>): recorded is Replayed => {
    if (recorded.event.type !== 'SubscriptionReplayed') return false
    if (idempotencyRecord === null) return recorded.metadata.causationId === context.commandId
    return recorded.event.data.claim?.key_hash === idempotencyRecord.key_hash
  }
  // Backwards, because it is among the newest events unless the key was used long ago.
  for await (const recorded of ledger.aggregates.events(subscriptionEntity, params.id, { direction: 'backwards' }))
    if (isIt(recorded)) return recorded
  throw new Error('A replay was accepted and is not in the stream.')
}

const replaySubscription = route({
  tag: 'Subscriptions',
  rateClass: 'replays',
  scope: 'events:subscribe',
  method: 'POST',
  path: '/subscriptions/{id}:replay',
  operationId: 'replay_subscription',
  audited: 'path',
  summary: 'Deliver the facts again from an earlier position, byte for byte the same; it replaces a replay in progress',
  params: z.object({ id: idSchema('sub') }),
  body: newReplay,
  idempotencyKey: 'honoured',
  responses: {
    202: {
      description:
        'The replay is accepted and runs while the subscription is active. The operation shows its progress.',
      schema: operationSchema,
      headers: ['Location', 'ETag', 'Ledger-Position', 'Idempotent-Replayed'],
    },
  },
  errors: ['too_many_changes'],
  handler: async (call): Promise<Reply> => {
    const { params, body, context, ledger, database, apiVersion } = call
    const idempotencyRecord = idempotencyRecordIfKeyed(call, { id: params.id, from: body.from })
    const deliveryStart = await deliveryStartOf(call, body.from)
    const to_position = await positionOf(database.sql, 'facts_v1')
    const command = { type: 'ReplaySubscription' as const, ...deliveryStart, to_position, claim: idempotencyRecord }
    const { position } = await executeCommand(call, command, async (_, row) => {
      await permitDelivery(call, row)
      await bindKeyOf(call, idempotencyRecord, { about: params.id, path: '/subscriptions' })
    })
    const started = await afterAppend(() => replayedBy(call, idempotencyRecord))
    const { replay, claim: recorded } = started.event.data
    const isRepeated = started.metadata.causationId !== context.commandId
    const conflict =
      idempotencyRecord && isRepeated
        ? keyConflict(ledger, params.id, idempotencyRecord, recorded ?? undefined)
        : undefined
    if (conflict) throw problemOfKeyConflict(conflict, '/subscriptions')
    return {
      status: 202,
      body: initialReplayView(params.id, started),
      headers: {
        Location: `/operations/${replayIdOf(params.id, replay)}`,
        ETag: etagOf(started.revision, apiVersion),
        'Ledger-Position': position,
        ...(isRepeated ? { 'Idempotent-Replayed': 'true' } : {}),
      },
    }
  },
})

/** A failure after the append has an unknown effect, not none. */
const afterAppend = async <T>(work: () => Promise<T>): Promise<T> => {
  try {
    return await work()
  } catch (error) {
    throw error instanceof Unavailable ? new Unavailable(error.dependency, { effect: 'unknown', cause: error }) : error
  }
}

export const replayRoutes: readonly AnyRoute[] = [replaySubscription]
