import { z } from 'zod'
import { type FactsPageRow, factsPage, type FeedPlace, placeBefore } from '../../projections/facts/queries.ts'
import { type CloudEvent, cloudEventSchema, FACT_TYPES, withFactBase } from '../../streams/facts.ts'
import { positionOf } from '../feeds/checkpoints.ts'
import { Problem } from './problem.ts'
import { type AnyRoute, type Call, type Reply, route, type Streamed } from './route.ts'
import { pageQuery, positionSchema, textSchema, timeSchema } from './schemas.ts'

/**
 * The published facts over HTTP: the same as Kafka carries, with the same ids, in the order of their arrival. That is the
 * order of the log, but for facts of keys that were parked: they come late, behind what was there before them.
 */

const eventSchema = cloudEventSchema.meta({ id: 'CloudEvent' })

const query = z.object({
  ...pageQuery,
  type: z.enum(FACT_TYPES).optional(),
  subject: textSchema.optional(),
  from_position: positionSchema
    .optional()
    .meta({ description: 'Begin at this position of the log; facts of earlier ones that came late are told too.' }),
  from_time: timeSchema.optional(),
})
type EventsCall = Call<undefined, z.output<typeof query>, undefined>

const eventsPageSchema = z.object({
  items: z.array(eventSchema),
  page: z.object({
    next_cursor: z.string().meta({
      description: 'Always there. A reader that follows it misses no fact; at the tail it waits for those to come.',
    }),
    has_more: z.boolean().meta({
      description: 'Also true of a page without items, where many facts did not fit the filters: go on at the cursor.',
    }),
    as_of_position: z.string(),
  }),
})

const bindingOf = ({ principal, query: { type, subject } }: EventsCall) => ({
  list: 'events',
  tenant: principal.tenant,
  type: type ?? null,
  subject: subject ?? null,
})

const cursorSchema = z.object({ after: z.string(), seq: z.string().default('0') })

const seal = (call: EventsCall, { arrival, seq }: FeedPlace): string =>
  call.cursors.seal(bindingOf(call), { after: String(arrival), seq: String(seq) })

/** Where to go on: behind the cursor, or from the position that was asked for, or from the beginning. */
const startOf = (call: EventsCall, cursor: string | undefined): FeedPlace => {
  if (cursor === undefined) return placeBefore(BigInt(call.query.from_position ?? 0))
  const { after, seq } = cursorSchema.parse(call.cursors.open(bindingOf(call), cursor))
  return { arrival: BigInt(after), seq: BigInt(seq) }
}

type Found = FeedPlace & { readonly event: CloudEvent }
type Part = {
  readonly facts: readonly Found[]
  /** How far was looked: where the next part begins. */
  readonly end: FeedPlace
  readonly hasMore: boolean
}

/** The next facts. A part without any still moves the place on, behind those that did not fit the filters. */
const read = async (call: EventsCall, after: FeedPlace, limit: number): Promise<Part> => {
  const { type, subject, from_time } = call.query
  const { tenant } = call.principal
  const { text, values } = factsPage({ tenant, after, limit: limit + 1, type, subject, from_time })
  const rows = await call.database.sql<FactsPageRow>(text, values)
  const found = rows.filter((row): row is FactsPageRow & Found => row.event !== null)
  const facts = found.slice(0, limit)
  const last = found.length > limit ? facts.at(-1) : rows.at(-1)
  return { facts, end: last ?? after, hasMore: found.length > limit || rows.at(-1)?.is_cut === true }
}

const page = async (call: EventsCall): Promise<Reply> => {
  const after = startOf(call, call.query.cursor)
  // Read first: the page is at least as new as it says.
  const asOf = await positionOf(call.database.sql, 'facts_v1')
  const { facts, end, hasMore } = await read(call, after, call.query.limit)
  return {
    status: 200,
    body: {
      items: facts.map(({ event }) => withFactBase(event, call.factBase)),
      page: { next_cursor: seal(call, end), has_more: hasMore, as_of_position: asOf.toString() },
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
    let quietSince = world.monotonicMs()
    let checkedAt = world.monotonicMs()
    await send(': the facts of this ledger\n\n')
    while (!signal.aborted) {
      if (world.monotonicMs() - checkedAt >= RECHECK_EVERY_MS) {
        const refused = await refusalOf(call)
        if (refused) return send(`: ended: ${refused}\n\n`)
        checkedAt = world.monotonicMs()
      }
      const { facts, end, hasMore } = await read(call, after, STREAM_PAGE)
      for (const fact of facts) {
        const data = JSON.stringify(withFactBase(fact.event, call.factBase))
        await send(`id: ${seal(call, fact)}\nevent: ${fact.event.type}\ndata: ${data}\n\n`)
      }
      after = end
      if (facts.length > 0) quietSince = world.monotonicMs()
      if (!hasMore) await world.sleep(POLL_MS, signal)
      if (world.monotonicMs() - quietSince < COMMENT_EVERY_MS) continue
      await send(': still here\n\n')
      quietSince = world.monotonicMs()
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
  responses: {
    200: {
      description: 'The facts, oldest first; one that was held back stands where it came.',
      schema: eventsPageSchema,
    },
  },
  errors: ['cursor_invalid', 'cursor_expired'],
  handle: async call => {
    const events: EventsCall = { ...call, params: undefined, body: undefined }
    if (call.accept !== SSE) return page(events)
    return { status: 200, stream: stream(events), contentType: SSE }
  },
})

export const eventRoutes: readonly AnyRoute[] = [listEvents]
