import { z } from 'zod'
import { factsPage } from '../../projections/facts/queries.ts'
import type { FactRow } from '../../projections/facts/projection.ts'
import { cloudEventSchema, FACT_TYPES } from '../../streams/facts.ts'
import { positionOf } from '../feeds/checkpoints.ts'
import { Problem } from './problem.ts'
import { type AnyRoute, type Call, type Reply, route, type Streamed } from './route.ts'
import { pageQuery, positionSchema, textSchema, timeSchema } from './schemas.ts'

/** The published facts over HTTP: what Kafka carries, with the same ids, in the order of the log. */

const eventSchema = cloudEventSchema.meta({ id: 'CloudEvent' })

const query = z.object({
  ...pageQuery,
  type: z.enum(FACT_TYPES).optional(),
  subject: textSchema.optional(),
  from_position: positionSchema.optional().meta({ description: 'Begin at this position of the log.' }),
  from_time: timeSchema.optional(),
})
type EventsCall = Call<undefined, z.output<typeof query>, undefined>

const eventsPageSchema = z.object({
  items: z.array(eventSchema),
  page: z.object({
    next_cursor: z.string().meta({ description: 'Always there: at the tail it waits for what is to come.' }),
    has_more: z.boolean(),
    as_of_position: z.string(),
  }),
})

const bindingOf = ({ principal, query: { type, subject } }: EventsCall) => ({
  list: 'events',
  tenant: principal.tenant,
  type: type ?? null,
  subject: subject ?? null,
})

const cursorSchema = z.object({ after: z.string() })

/** Where to go on: behind the cursor, or from the position that was asked for, or from the beginning. */
const startOf = (call: EventsCall, cursor: string | undefined): bigint => {
  if (cursor !== undefined) return BigInt(cursorSchema.parse(call.cursors.open(bindingOf(call), cursor)).after)
  return BigInt(call.query.from_position ?? 0) - 1n
}

const read = (
  { database, principal, query: { type, subject, from_time } }: EventsCall,
  after: bigint,
  limit: number,
) => {
  const { text, values } = factsPage({ tenant: principal.tenant, after, limit, type, subject, from_time })
  return database.sql<FactRow>(text, values)
}

const page = async (call: EventsCall): Promise<Reply> => {
  const after = startOf(call, call.query.cursor)
  const asOf = await positionOf(call.database.sql, 'facts_v1')
  const rows = await read(call, after, call.query.limit + 1)
  const items = rows.slice(0, call.query.limit)
  const next = call.cursors.seal(bindingOf(call), { after: String(items.at(-1)?.position ?? after) })
  return {
    status: 200,
    body: {
      items: items.map(({ event }) => event),
      page: { next_cursor: next, has_more: rows.length > items.length, as_of_position: asOf.toString() },
    },
  }
}

const STREAM_PAGE = 100
const POLL_MS = 200
const COMMENT_EVERY_MS = 15_000
/** How often it is asked whether the reader may still read. */
const RECHECK_EVERY_MS = 5_000

/** Server-sent events: history first, then whatever comes, until the client goes. */
const stream = (call: EventsCall): Streamed => {
  // Now, and not when the stream begins: a cursor that is none must still be answered with a problem.
  let after = startOf(call, call.lastEventId ?? call.query.cursor)
  return async (send, gone) => {
    const { world } = call.ledger
    const signal = AbortSignal.any([gone, call.stopping])
    let quietSince = world.now()
    let checkedAt = world.now()
    await send(': the facts of this ledger\n\n')
    while (!signal.aborted) {
      if (world.now() - checkedAt >= RECHECK_EVERY_MS) {
        const refused = await refusalOf(call)
        if (refused) return send(`: ended: ${refused}\n\n`)
        checkedAt = world.now()
      }
      const rows = await read(call, after, STREAM_PAGE)
      for (const { position, event } of rows) {
        const id = call.cursors.seal(bindingOf(call), { after: String(position) })
        await send(`id: ${id}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
        after = position
      }
      if (rows.length > 0) quietSince = world.now()
      else await world.sleep(POLL_MS, signal)
      if (world.now() - quietSince < COMMENT_EVERY_MS) continue
      await send(': still here\n\n')
      quietSince = world.now()
    }
  }
}

/** The code that the reader would now be refused with: a token runs out, a key or a scope is taken away. */
const refusalOf = async ({ recheck }: EventsCall): Promise<string | undefined> => {
  try {
    await recheck()
    return undefined
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    // What cannot be asked just now is asked again; it was allowed a moment ago.
    return error.code === 'dependency_unavailable' ? undefined : error.code
  }
}

const SSE = 'text/event-stream'

const listEvents = route({
  method: 'GET',
  path: '/events',
  operationId: 'list_events',
  summary: 'Read the published facts: a page, or a stream of server-sent events',
  tag: 'Events',
  scope: 'events:read',
  rateClass: 'default',
  query,
  offers: ['application/json', SSE],
  responses: { 200: { description: 'The facts, oldest first.', schema: eventsPageSchema } },
  errors: ['cursor_invalid', 'cursor_expired'],
  handle: async call => {
    const events: EventsCall = { ...call, params: undefined, body: undefined }
    if (call.accept !== SSE) return page(events)
    return { status: 200, stream: stream(events), contentType: SSE }
  },
})

export const eventRoutes: readonly AnyRoute[] = [listEvents]
