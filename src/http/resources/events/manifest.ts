import { timeNow } from '../../../lib/time.ts'
import { z } from 'zod'
import { categoryOfTopic, MANIFEST_TOPICS } from '../../../../projections/factTopics.ts'
import { waitMaxMs } from '../../../settings/timeBudgets.ts'
import { nthFact } from '../../../../projections/facts/queries.ts'
import { proveFacts } from '../../../commands/factCounts.ts'
import { FACTS } from '../../../commands/manifests.ts'
import { positionOf } from '../../../feeds/checkpoints.ts'
import { scopesOfCategory } from '../../../identity/resourceScopes.ts'
import { reaches } from '../../../evidence/continuity.ts'
import { reachedPosition, waitApplied } from '../collection.ts'
import { Problem } from '../../problems/problemCatalogue.ts'
import { PRIVATE_CACHING } from '../commonReplies.ts'
import { type AnyRoute, type Reply, route } from '../../route.ts'
import type { Call } from '../../services.ts'
import { positionSchema } from '../../request/position.ts'
import { timeSchema } from '../commonSchemas.ts'

/** GET /events/manifest: count and hash of the facts in a range, by which a consumer proves that it has all of them. */

/** Hashes of parts do not compose to that of the whole, so a long range is proved in several. */
export const FACTS_MAX = 20_000

const topicSchema = z.enum(MANIFEST_TOPICS)

const query = z.object({
  topic: topicSchema.optional().meta({
    description: 'The topic; by default all topics whose facts the credential may read, with an item for each.',
  }),
  from: positionSchema.optional().meta({ description: 'The first position of the range; 0 by default.' }),
  to: positionSchema.optional().meta({
    description:
      'The last position of the range, inclusive; by default the last one whose facts are known, or the position of ' +
      `fact number ${FACTS_MAX}: to_position says so, and the next range begins after it.`,
  }),
})
type ManifestCall = Call<undefined, z.output<typeof query>, undefined>

const manifestSchema = z
  .object({
    topic: topicSchema,
    from_position: z.string(),
    to_position: z.string(),
    count: z.int().min(0),
    sha256: z
      .string()
      .regex(/^[0-9a-f]{64}$/)
      .meta({
        description:
          'SHA-256 over the ids of the facts, in the order of their positions, each followed by a line feed.',
      }),
    missing: z.array(z.object({ id: z.string(), position: z.string() })).meta({
      description:
        'Events of the range that are held back and may become facts, the first 100: they are neither counted nor ' +
        'hashed, and come at the end of the feed when they are released. A proof holds for everything else.',
    }),
    at: timeSchema,
  })
  .meta({ id: 'FactManifest' })
type Item = z.input<typeof manifestSchema>

type Range = { readonly from: bigint; readonly to: bigint }

const invertedRange = (): Problem =>
  new Problem('validation_failed', {
    errors: [{ pointer: '?from', code: 'too_big', detail: 'The range ends before it starts.' }],
  })

const tooLong = (end: bigint): Problem =>
  new Problem('validation_failed', {
    errors: [
      {
        pointer: '?to',
        code: 'too_big',
        detail: `The range has more than ${FACTS_MAX} facts, the maximum of one request. Request it in parts; the first one may end at ${end}.`,
      },
    ],
  })

/** The last position of the longest range that may be counted at once. Throws Problem if the caller asks for more. */
const boundOf = async (call: ManifestCall, { from, to }: Range): Promise<bigint> => {
  const facts = { tenant: call.principal.tenant, after: from - 1n, to }
  const { text, values } = nthFact(facts, FACTS_MAX + 1)
  const [beyond] = await call.bulk.sql<{ position: bigint }>(text, values)
  if (beyond === undefined) return to
  const end = beyond.position - 1n
  if (call.query.to !== undefined) throw tooLong(end)
  return end
}

/** Throws Problem for a position that the log does not have yet: no wait and no retry would help. */
const requireWithinLog = async ({ ledger: { store, world } }: ManifestCall, to: bigint): Promise<void> => {
  if (await reaches(store, to, world)) return
  const detail = `The log ends at position ${await store.head()}. Send a position up to that, or omit \`to\`.`
  throw new Problem('validation_failed', { errors: [{ pointer: '?to', code: 'too_big', detail }] })
}

/** The range of the manifest. Throws Problem `projection_behind` if its facts are not all projected yet. */
const rangeOf = async (call: ManifestCall): Promise<Range> => {
  const from = BigInt(call.query.from ?? 0)
  const to = call.query.to === undefined ? undefined : BigInt(call.query.to)
  if (to !== undefined && from > to) throw invertedRange()
  if (to !== undefined && to > (await positionOf(call.bulk.sql, FACTS))) await requireWithinLog(call, to)
  const named = to ?? from
  const least = call.minPosition ?? 0n
  const reached = await reachedPosition(call, FACTS, named > least ? named : least)
  return { from, to: await boundOf(call, { from, to: to ?? reached }) }
}

const scopesOf = (topic: string) => scopesOfCategory(categoryOfTopic(topic))

/** The requested topic, or those that the caller may read. Throws Problem for one that it may not read. */
const topicsFor = ({ principal, query: { topic }, requireScopes }: ManifestCall): readonly string[] => {
  if (topic === undefined)
    return MANIFEST_TOPICS.filter(name => scopesOf(name).every(scope => principal.scopes.has(scope)))
  requireScopes(scopesOf(topic))
  return [topic]
}

type Counted = Range & { readonly topics: readonly string[] }

const itemsOf = async (
  call: ManifestCall,
  { topics, from, to }: Counted,
  signal: AbortSignal,
): Promise<readonly Item[]> => {
  const { sql } = call.bulk
  const proofs = await proveFacts(sql, { topics, tenant: call.principal.tenant, from, to, signal })
  // A rebuild resets the checkpoint; facts that were counted during a rebuild may be incomplete.
  if ((await positionOf(sql, FACTS)) < to) throw new Problem('projection_behind')
  const at = timeNow(call.ledger.world)
  const range = { from_position: from.toString(), to_position: to.toString() }
  return proofs.map(({ topic, count, sha256, missing }) => ({
    topic,
    ...range,
    count,
    sha256,
    missing: missing.map(({ id, position }) => ({ id, position: position.toString() })),
    at,
  }))
}

/** A count that takes longer than the longest wait is streamed: its head at once, its items when they are counted. */
const readManifest = async (call: ManifestCall): Promise<Reply> => {
  const { world } = call.ledger
  const untilMs = world.monotonicMs() + waitMaxMs(call.leftMs)
  const topics = topicsFor(call)
  call.onClose(await call.concurrencyLimits.take('manifests', call.principal))
  const counted = { topics, ...(await rangeOf(call)) }
  const abandoned = new AbortController()
  const answered = new AbortController()
  const items = itemsOf(call, counted, AbortSignal.any([abandoned.signal, call.stopping]))
  const isReady = items.then(() => true)
  // After the race has seen a failure, which is a problem then and no response that is cut off.
  isReady.finally(() => answered.abort()).catch(() => undefined)
  const isLate = world.sleep(Math.max(0, untilMs - world.monotonicMs()), answered.signal).then(() => false)
  const headers = { ...PRIVATE_CACHING, ...waitApplied(call) }
  if (await Promise.race([isReady, isLate])) return { status: 200, headers, body: { items: await items } }
  return {
    status: 200,
    headers,
    contentType: 'application/json',
    stream: async (send, gone) => {
      gone.addEventListener('abort', () => abandoned.abort())
      await send('{"items":')
      await send(`${JSON.stringify(await items)}}`)
    },
  }
}

const readEventsManifest = route({
  method: 'GET',
  path: '/events/manifest',
  operationId: 'read_events_manifest',
  description: `A range has at most ${FACTS_MAX} facts of the tenant, of all topics together. A longer history is proved in several ranges, one after the other.`,
  summary: 'Count and hash the published facts of a range of positions, to prove a copy complete',
  tag: 'Events',
  scope: 'events:read',
  rateClass: 'default',
  query,
  isList: true,
  responses: {
    200: {
      description: 'One item for each topic.',
      schema: z.object({ items: z.array(manifestSchema) }),
      headers: ['Preference-Applied'],
    },
  },
  errors: ['projection_behind'],
  handler: call => readManifest({ ...call, params: undefined, body: undefined }),
})

export const manifestRoutes: readonly AnyRoute[] = [readEventsManifest]
