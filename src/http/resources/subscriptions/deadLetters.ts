import { z } from 'zod'
import type { SubscriptionRow } from '../../../../projections/subscriptions/projection.ts'
import { deadLetterPage, type DeadLetterRow } from '../../../../projections/subscriptions/queries.ts'
import { idSchema, type SubscriptionId } from '../../../../streams/ids.ts'
import { subscriptionEntity } from '../../../commands/entities.ts'
import { recordAuditedDecision } from '../../../commands/recordAuditedDecision.ts'
import { type DeadLetterRequest, requestForDeadLetters } from '../../../feeds/deadLetters.ts'
import { scopesOfFacts } from '../../../identity/resourceScopes.ts'
import { statusOf } from './replayView.ts'
import { keyInCursor, pageReply, pageQuery, listFromLog } from '../paging.ts'
import { PRIVATE_CACHING, visibleRow } from '../commonReplies.ts'
import { type AnyRoute, type Reply, route } from '../../route.ts'
import type { Call } from '../../services.ts'
import { permitDelivery } from './subscriptionCommands.ts'
import {
  deadLetterRequestSchema,
  deadLetterSchema,
  deadLetterView,
  discardRequest,
  replayRequest,
  subscriptionView,
} from './subscriptionSchemas.ts'

const cursorSchema = z.object({ after: z.string() })

const listDeadLetters = route({
  tag: 'Subscriptions',
  scope: 'events:subscribe',
  method: 'GET',
  path: '/subscriptions/{id}/dead-letters',
  operationId: 'list_dead_letters',
  summary: 'List the facts that could not be delivered, and the later ones of the same keys, in the order of delivery',
  params: z.object({ id: idSchema('sub') }),
  query: z.object(pageQuery),
  order: ['position'],
  ...listFromLog(deadLetterSchema),
  handler: async call => {
    const { params, query, principal, path, lists, requireScopes } = call
    const row = await visibleRow(call, subscriptionEntity, params.id)
    requireScopes(scopesOfFacts(row.types))
    const binding = { tenant: principal.tenant, path }
    const after = BigInt(keyInCursor(call, query.cursor, { binding, schema: cursorSchema })?.after ?? -1)
    const asOf = await statusOf(call, row)
    const { text, values } = deadLetterPage(params.id, after, query.limit + 1)
    const rows = await lists.sql<DeadLetterRow>(text, values)
    const page = rows.slice(0, query.limit)
    const hasMore = rows.length > page.length
    return pageReply(
      call,
      {
        items: page.map(deadLetterView),
        // Never null, as at GET /events, so a reader can continue from the end of the list.
        next: { after: String(page.at(-1)?.position ?? after) },
        ...{ hasMore, binding, asOfPosition: subscriptionView(row, asOf).position, parameters: { limit: query.limit } },
      },
      PRIVATE_CACHING,
    )
  },
})

const action = {
  tag: 'Subscriptions',
  scope: 'events:subscribe',
  method: 'POST',
  audited: 'path',
  params: z.object({ id: idSchema('sub') }),
  responses: {
    202: {
      description: 'Noted, and carried out by the delivery; the list shows what remains.',
      schema: deadLetterRequestSchema,
    },
  },
} as const

type Action = Call<{ id: SubscriptionId }, unknown, z.output<typeof discardRequest>>

/** The audit record is written before the request, so that no discarded fact is without one. */
const request = async (call: Action, row: SubscriptionRow, what: DeadLetterRequest): Promise<Reply> => {
  const { body, ledger, context, database } = call
  const { subject, reason, position } = body
  const command = { type: 'GrantAccess' as const, operation: `${what}_dead_letters`, resource: row.id, reason }
  await recordAuditedDecision(ledger, command, context)
  const only = position === undefined ? undefined : BigInt(position)
  const facts = await requestForDeadLetters(database.sql, { delivery: row.id, key: subject }, what, only)
  return { status: 202, body: { subject, requested: what, facts } }
}

const replayDeadLetters = route({
  ...action,
  path: '/subscriptions/{id}/dead-letters:replay',
  operationId: 'replay_dead_letters',
  summary: 'Deliver the dead letters of a key again, in order, up to the first that fails again',
  body: replayRequest,
  errors: ['policy_denied'],
  handler: async call => {
    const row = await visibleRow(call, subscriptionEntity, call.params.id)
    await permitDelivery(call, row)
    return request(call, row, 'replay')
  },
})

const discardDeadLetters = route({
  ...action,
  path: '/subscriptions/{id}/dead-letters:discard',
  operationId: 'discard_dead_letters',
  summary: 'Discard the dead letters of a key, or one of them: the subscription never gets them',
  description: 'The facts stay in the ledger, at GET /events and in their histories.',
  body: discardRequest,
  handler: async call => {
    const row = await visibleRow(call, subscriptionEntity, call.params.id)
    call.requireScopes(scopesOfFacts(row.types))
    return request(call, row, 'discard')
  },
})

export const deadLetterRoutes: readonly AnyRoute[] = [listDeadLetters, replayDeadLetters, discardDeadLetters]
