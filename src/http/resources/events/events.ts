import { z } from 'zod'
import { cloudEventSchema, withSchemaBaseUrl } from '../../../../streams/facts.ts'
import { positionOf } from '../../../feeds/checkpoints.ts'
import { eventStream } from './eventStream.ts'
import { type EventsCall, query, readFacts, requireInLog, requireTypes, cursorAt, startPlaceOf } from './readFacts.ts'
import { pageBody } from '../paging.ts'
import { type AnyRoute, type Reply, route } from '../../route.ts'

/** GET /events: the published facts in order of arrival. Facts of parked keys arrive when they are released. */

const eventSchema = cloudEventSchema.meta({ id: 'CloudEvent' })

const eventsPageSchema = z.object({
  items: z.array(eventSchema),
  page: z.object({
    next_cursor: z.string().meta({
      description:
        'Always present. A reader that follows it misses no fact that it may read; at the end of the log it waits for ' +
        'new ones. Facts that were left out for want of a scope are not sent later: with the scope, read their type ' +
        'from the beginning.',
    }),
    has_more: z.boolean().meta({
      description:
        'May be true of a page without items, when the filters excluded many facts: continue with the cursor.',
    }),
    as_of_position: z.string(),
  }),
})

const page = async (call: EventsCall): Promise<Reply> => {
  const after = startPlaceOf(call, call.query.cursor)
  // The position is read before the facts, so the page is at least as new.
  const asOf = await positionOf(call.database.sql, 'facts_v1')
  if (call.query.cursor !== undefined) await requireInLog(call, after, asOf)
  const { facts, end, hasMore } = await readFacts(call, after, call.query.limit, ({ text, values }) =>
    call.lists.sql(text, values),
  )
  const items = facts.map(({ event }) => withSchemaBaseUrl(event, call.schemaBaseUrl))
  return {
    status: 200,
    body: pageBody({ items, hasMore, nextCursor: cursorAt(call, end), asOfPosition: asOf.toString() }),
  }
}

const SSE = 'text/event-stream'

const listEvents = route({
  method: 'GET',
  path: '/events',
  operationId: 'list_events',
  summary: 'Read the published facts, as a page or as a stream of server-sent events',
  description:
    'Each type requires the read scope of its resource: orders:read, invoices:read, payments:read, and exports:read for ' +
    'export.completed. Types that the credential may not read are left out; one that is named in type is refused (403). ' +
    'A stream ends when one of these scopes is taken from its reader: it resumes with Last-Event-ID, without that type.',
  tag: 'Events',
  scope: 'events:read',
  rateClass: 'default',
  query,
  offers: ['application/json', SSE],
  order: ['position'],
  responses: {
    200: {
      description: 'The facts, oldest first; a fact that was held back appears at the place of its release.',
      schema: eventsPageSchema,
    },
  },
  errors: ['cursor_invalid', 'cursor_expired'],
  handler: async call => {
    const events: EventsCall = { ...call, params: undefined, body: undefined }
    requireTypes(events)
    if (call.accept !== SSE) return page(events)
    return { status: 200, stream: await eventStream(events), contentType: SSE }
  },
})

export const eventRoutes: readonly AnyRoute[] = [listEvents]
