import { z } from 'zod'
import { deadLetterPage, type DeadLetterRow } from '../../../../projections/subscriptions/queries.ts'
import { idSchema } from '../../../../streams/ids.ts'
import { subscriptionEntity } from '../../../commands/entities.ts'
import { scopesOfFacts } from '../../../identity/resourceScopes.ts'
import { statusOf } from './replayView.ts'
import { keyInCursor, pageReply } from '../paging.ts'
import { PRIVATE_CACHING, visibleRow } from '../commonReplies.ts'
import { type AnyRoute, route } from '../../route.ts'
import { pageQuery, pageSchema } from '../paging.ts'
import { deadLetterSchema, deadLetterView, subscriptionView } from './subscriptionSchemas.ts'

/** GET /subscriptions/{id}/dead-letters: the dead letters of a subscription. */

const cursorSchema = z.object({ after: z.string() })

const listDeadLetters = route({
  tag: 'Subscriptions',
  rateClass: 'default',
  scope: 'events:subscribe',
  method: 'GET',
  path: '/subscriptions/{id}/dead-letters',
  operationId: 'list_dead_letters',
  summary: 'List the facts that could not be delivered, and the later ones of the same keys, in the order of delivery',
  params: z.object({ id: idSchema('sub') }),
  query: z.object(pageQuery),
  order: ['position'],
  responses: { 200: { description: 'A page of the list.', schema: pageSchema(deadLetterSchema), headers: ['Link'] } },
  errors: ['cursor_invalid', 'cursor_expired'],
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

export const deadLetterRoutes: readonly AnyRoute[] = [listDeadLetters]
