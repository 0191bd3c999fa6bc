import { z } from 'zod'
import type { IdempotencyRecord } from '../../../../streams/idempotencyRecord.ts'
import type { Recorded } from '../../../../streams/envelope.ts'
import { idSchema, type SubscriptionId } from '../../../../streams/ids.ts'
import type { SubscriptionEvent } from '../../../../streams/subscription/index.ts'
import { keyConflict } from '../../../commands/idempotency/conflicts.ts'
import { subscriptionEntity } from '../../../commands/entities.ts'
import { decisionOn } from '../../../commands/streamGrowth.ts'
import { replayIdOf } from '../../../commands/subscriptions/ids.ts'
import { positionOf } from '../../../feeds/checkpoints.ts'
import { etagOf } from '../../request/entityTags.ts'
import { bindKeyOf, idempotencyRecordIfKeyed, idempotencyRecordOf, isKeyBound } from '../../request/idempotencyKey.ts'
import { operationSchema } from '../operationSchema.ts'
import { initialReplayView, type Replayed } from './replayView.ts'
import { problemOfKeyConflict } from '../../problems/problemCatalogue.ts'
import { visibleRow } from '../commonReplies.ts'
import { type AnyRoute, type Reply, route } from '../../route.ts'
import type { LogCall } from '../../services.ts'
import { executeCommand, permitDelivery, deliveryStartOf } from './subscriptionCommands.ts'
import { newReplay } from './subscriptionSchemas.ts'
import { CREATED_HEADERS } from '../commonSchemas.ts'

type ById = LogCall<{ id: SubscriptionId }, unknown, z.output<typeof newReplay>>

const PATH = '/subscriptions'
/** The request as it is compared with a later one under its key. */
const requestOf = ({ params, body }: ById) => ({ id: params.id, from: body.from })

/** The replay that this call created, or that the first request with its key created. */
const replayedBy = async ({ ledger, params, context }: ById, idempotencyRecord: IdempotencyRecord | null) => {
  const isIt = (recorded: Recorded<SubscriptionEvent>): recorded is Replayed => {
    if (recorded.event.type !== 'SubscriptionReplayed') return false
    if (idempotencyRecord === null) return recorded.metadata.causationId === context.commandId
    return recorded.event.data.claim?.key_hash === idempotencyRecord.key_hash
  }
  // Backwards, because it is among the newest events unless the key was used long ago.
  for await (const recorded of ledger.aggregates.events(subscriptionEntity, params.id, { direction: 'backwards' }))
    if (isIt(recorded)) return recorded
  return undefined
}

const replyTo = (call: ById, started: Replayed, idempotencyRecord: IdempotencyRecord | null): Reply => {
  const { ledger, params, context, apiVersion } = call
  const { replay, claim: recorded } = started.event.data
  const isRepeated = started.metadata.causationId !== context.commandId
  const conflict =
    idempotencyRecord && isRepeated
      ? keyConflict(ledger, params.id, idempotencyRecord, recorded ?? undefined)
      : undefined
  if (conflict) throw problemOfKeyConflict(conflict, PATH)
  return {
    status: 202,
    body: initialReplayView(params.id, started),
    headers: {
      Location: `/operations/${replayIdOf(params.id, replay)}`,
      ETag: etagOf(started.revision, apiVersion),
      'Ledger-Position': started.position.toString(),
      ...(isRepeated ? { 'Idempotent-Replayed': 'true' } : {}),
    },
  }
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
      headers: CREATED_HEADERS,
    },
  },
  errors: ['too_many_changes'],
  handler: async call => {
    const { params, body, ledger, database } = call
    const idempotencyRecord = idempotencyRecordIfKeyed(call, requestOf(call))
    const deliveryStart = await deliveryStartOf(call, body.from)
    const to_position = await positionOf(database.sql, 'facts_v1')
    const command = { type: 'ReplaySubscription' as const, ...deliveryStart, to_position, claim: idempotencyRecord }
    await executeCommand(call, command, async (row, before) => {
      await permitDelivery(call, row)
      const decided = decisionOn(ledger, subscriptionEntity, before, command)
      await bindKeyOf(call, idempotencyRecord, { about: params.id, path: PATH, decided })
    })
    const started = await replayedBy(call, idempotencyRecord)
    if (started === undefined) throw new Error('A replay was accepted and is not in the stream.')
    return replyTo(call, started, idempotencyRecord)
  },
  replay: async call => {
    const { params, idempotency } = call
    await permitDelivery(call, await visibleRow(call, subscriptionEntity, params.id))
    const record = idempotencyRecordOf(idempotency, call, requestOf(call))
    if (!(await isKeyBound(call, record, { about: params.id, path: PATH }))) return undefined
    const started = await replayedBy(call, record)
    return started && replyTo(call, started, record)
  },
})

export const replayRoutes: readonly AnyRoute[] = [replaySubscription]
