import { z } from 'zod'
import type { SubscriptionRow } from '../../../../projections/subscriptions/projection.ts'
import {
  type ListedSubscription,
  subscriptionWithTopics,
  subscriptionPage,
} from '../../../../projections/subscriptions/queries.ts'
import { idSchema } from '../../../../streams/ids.ts'
import type { SubscriptionCommand } from '../../../../streams/subscription/index.ts'
import { create, replay } from '../../../commands/idempotency/creation.ts'
import { subscriptionEntity } from '../../../commands/entities.ts'
import { confirmSubscription } from '../../../commands/subscriptions/confirmation.ts'
import { dayOf } from '../../../lib/time.ts'
import { keepReservation, reserve } from '../../../commands/quotas/reservations.ts'
import { newSubscriptionId, subscriptionIdOf } from '../../../commands/subscriptions/ids.ts'
import { unlessUnavailable } from '../../../ports.ts'
import { readPage } from '../collection.ts'
import { etagOf } from '../../request/entityTags.ts'
import { idempotencyRecordIfKeyed, idempotencyRecordOf } from '../../request/idempotencyKey.ts'
import { Problem } from '../../problems/problemCatalogue.ts'
import { statusOf } from './replayView.ts'
import { replyToCreation, replyWithTag, visibleRow } from '../commonReplies.ts'
import { type AnyRoute, route } from '../../route.ts'
import type { AnyCall, LogCall } from '../../services.ts'
import { CREATED_HEADERS, changedResource, emptyBody, resourceById } from '../commonSchemas.ts'
import { createdQuery, pageQuery, listOf } from '../paging.ts'
import { executeCommand, permitDelivery, permitTypes, deliveryStartOf } from './subscriptionCommands.ts'
import {
  newSubscription,
  scopesFor,
  SUBSCRIBABLE_TYPES,
  subscriptionSchema,
  subscriptionView,
  tickOf,
} from './subscriptionSchemas.ts'

const byId = z.object({ id: idSchema('sub') })
const PATH = '/subscriptions'
const common = { tag: 'Subscriptions', scope: 'events:subscribe' } as const

const TOPIC_POLL_MS = 25

/** Waits for the topic, so the creator can read it at once. Without a reachable broker it is created later. */
const waitForTopic = async ({ database, ledger: { world }, topicWaitMs }: AnyCall, id: string): Promise<void> => {
  const until = world.monotonicMs() + topicWaitMs
  const { text, values } = subscriptionWithTopics(id)
  // The subscription is created, even if the database does not answer.
  while (world.monotonicMs() < until && (await unlessUnavailable(database.sql(text, values)))?.length === 0)
    await world.sleep(TOPIC_POLL_MS)
}

/** Takes one of the tenant's subscription slots. Throws Problem `quota_exceeded` without one. */
const takeSlot = async (
  { database, principal: { tenant }, subscriptionsPerTenantMax: max }: AnyCall,
  id: string,
): Promise<void> => {
  const place = { kind: 'subscriptions', tenant, id, max: { tenant: max } } as const
  if ((await reserve(database, place)) === undefined) return
  const detail = `A tenant may have ${max} subscriptions. A deleted one counts until its topics are removed.`
  throw new Problem('quota_exceeded', { detail })
}

const createSubscription = route({
  ...common,
  method: 'POST',
  path: PATH,
  operationId: 'create_subscription',
  audited: 'created',
  summary: 'Create a subscription, which delivers facts to a Kafka topic of its own',
  body: newSubscription,
  idempotencyKey: 'honoured',
  responses: {
    201: {
      description: 'The subscription; its delivery has begun.',
      schema: subscriptionSchema,
      headers: CREATED_HEADERS,
    },
  },
  errors: ['quota_exceeded'],
  handler: async call => {
    const { ledger, context, idempotency } = call
    const request = requestOf(call)
    const { types, start, principal, metadata } = request
    const scopes = scopesFor(types)
    await permitTypes(call, scopes)
    const id = idempotency ? subscriptionIdOf(idempotency) : newSubscriptionId(ledger.world)
    await takeSlot(call, id)
    const idempotencyRecord = idempotencyRecordIfKeyed(call, request)
    const deliveryStart = await deliveryStartOf(call, start)
    const terms = { types, ...deliveryStart, principal, scopes, metadata }
    const command = { type: 'CreateSubscription' as const, ...terms, claim: idempotencyRecord }
    const created = await create(ledger, subscriptionEntity, id, { command, context, idempotencyRecord })
    if (created.kind === 'created')
      await keepReservation(call.database, { kind: 'subscriptions', tenant: call.principal.tenant, id })
    if (created.kind === 'created') await waitForTopic(call, id)
    return replyToCreation(call, created, PATH, row => subscriptionView(row))
  },
  replay: async call => {
    const { ledger, idempotency } = call
    const request = requestOf(call)
    await permitTypes(call, scopesFor(request.types))
    const record = idempotencyRecordOf(idempotency, call, request)
    const replayed = await replay(ledger, subscriptionEntity, subscriptionIdOf(idempotency), record)
    return replayed && replyToCreation(call, replayed, PATH, row => subscriptionView(row))
  },
})

/** The request as it is compared with a later one under its key: with its types in a fixed order. */
const requestOf = ({ body }: LogCall<unknown, unknown, z.output<typeof newSubscription>>) => {
  const { start, principal, metadata } = body
  return { types: SUBSCRIBABLE_TYPES.filter(type => body.types.includes(type)), start, principal, metadata }
}

const representationOf = async (call: AnyCall, row: SubscriptionRow) => {
  const body = subscriptionView(row, await statusOf(call, row), call.subscriptionConfirmationMs)
  return { body, etag: etagOf(row.revision, call.apiVersion, { tick: tickOf(body) }) }
}

const readSubscription = route({
  ...common,
  method: 'GET',
  path: `${PATH}/{id}`,
  operationId: 'read_subscription',
  summary: 'Read a subscription and the progress of its delivery',
  params: byId,
  ...resourceById(subscriptionSchema, 'The subscription.'),
  handler: async call => {
    const row = await visibleRow(call, subscriptionEntity, call.params.id)
    const { body, etag } = await representationOf(call, row)
    return replyWithTag(call, etag, body)
  },
})

const listSubscriptions = route({
  ...common,
  method: 'GET',
  path: PATH,
  operationId: 'list_subscriptions',
  summary: 'List the subscriptions of the tenant, newest first',
  query: z.object({ ...pageQuery, ...createdQuery, state: subscriptionSchema.shape.state.optional() }),
  ...listOf(subscriptionSchema),
  handler: call =>
    readPage(call, {
      name: 'subscriptions_v1',
      page: subscriptionPage,
      render: (row: ListedSubscription) => subscriptionView(row, row, call.subscriptionConfirmationMs),
    }),
})

const deleteSubscription = route({
  ...common,
  method: 'DELETE',
  path: `${PATH}/{id}`,
  operationId: 'delete_subscription',
  endsWork: true,
  audited: 'path',
  summary: 'Delete a subscription together with its topics',
  params: byId,
  responses: { 204: { description: 'The resource is deleted.', headers: ['Ledger-Position'] } },
  handler: async call => {
    const { position } = await executeCommand(call, { type: 'DeleteSubscription' })
    return { status: 204, headers: { 'Ledger-Position': position } }
  },
})

/** A resumption confirms the subscription, which would otherwise be stopped again while its creator is not seen. */
const permitAndConfirm = async (call: AnyCall, row: SubscriptionRow): Promise<void> => {
  await permitDelivery(call, row)
  await confirmSubscription(call.database.sql, row.id, dayOf(call.ledger.world.now()))
}

const switchRoute = (name: 'pause' | 'resume', command: SubscriptionCommand, summary: string): AnyRoute =>
  route({
    ...common,
    method: 'POST',
    path: `${PATH}/{id}:${name}`,
    operationId: `${name}_subscription`,
    audited: 'path',
    summary,
    params: byId,
    body: emptyBody,
    responses: { 200: changedResource(subscriptionSchema, 'The subscription.') },
    errors: name === 'resume' ? ['too_many_changes'] : [],
    handler: async call => {
      const permit = (row: SubscriptionRow) => permitAndConfirm(call, row)
      const { row, position } = await executeCommand(call, command, name === 'resume' ? permit : undefined)
      const { body, etag } = await representationOf(call, row)
      return { status: 200, body, headers: { ETag: etag, 'Ledger-Position': position } }
    },
  })
const pauseSubscription = switchRoute(
  'pause',
  { type: 'PauseSubscription' },
  'Pause the delivery; a stopped subscription is returned unchanged',
)
const resumeSubscription = switchRoute(
  'resume',
  { type: 'ResumeSubscription' },
  'Resume the delivery where it was paused, or where it was stopped once its creator is permitted again',
)

export const subscriptionRoutes: readonly AnyRoute[] = [
  createSubscription,
  listSubscriptions,
  readSubscription,
  deleteSubscription,
  pauseSubscription,
  resumeSubscription,
]
