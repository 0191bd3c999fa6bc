import { z } from 'zod'
import { type FactsPageRow, factsPage, type FeedPlace, placeBefore } from '../../../../projections/facts/queries.ts'
import type { Query } from '../../../../projections/listQueries.ts'
import { type CloudEvent, FACT_TYPES } from '../../../../streams/facts.ts'
import { readableFactTypes, TENANT_FACT_TYPES, scopesOfFacts } from '../../../identity/resourceScopes.ts'
import type { Call } from '../../services.ts'
import { reaches } from '../../../evidence/continuity.ts'
import { Problem } from '../../problems/problemCatalogue.ts'
import { keyInCursor, pageQuery } from '../paging.ts'
import { positionSchema } from '../../request/position.ts'
import { textSchema, timeParameter } from '../commonSchemas.ts'

export const query = z.object({
  ...pageQuery,
  type: z.enum(FACT_TYPES).optional(),
  subject: textSchema.optional(),
  from_position: positionSchema.optional().meta({
    description: 'Start at this position of the log; facts of earlier positions that are released later are included.',
  }),
  from_time: timeParameter.optional(),
})
export type EventsCall = Call<undefined, z.output<typeof query>, undefined>

/**
 * Checks that the caller may read the type that it asks for. Every recheck requires the scopes that it has now, so a
 * reader who loses one is refused, and continues at its place without those facts. Throws Problem.
 */
export const requireTypes = ({ principal, query: { type }, requireScopes }: EventsCall): void =>
  requireScopes(scopesOfFacts(type === undefined ? readableFactTypes(principal) : [type]))

/** The types of the facts to read; undefined for all. */
export const typesFor = ({ principal, query: { type } }: EventsCall): readonly string[] | undefined => {
  if (type !== undefined) return [type]
  const readable = readableFactTypes(principal)
  return readable.length === TENANT_FACT_TYPES.length ? undefined : readable
}

/** The tenant and the filters of a cursor, not the caller's scopes: a cursor outlives a change of them. */
export const bindingOf = ({ principal, query: { type, subject } }: EventsCall) => ({
  list: 'events',
  tenant: principal.tenant,
  type: type ?? null,
  subject: subject ?? null,
})

const cursorSchema = z.object({ after: z.string(), seq: z.string().default('0') })

export const cursorAt = (call: EventsCall, { arrival, seq }: FeedPlace): string =>
  call.cursors.encrypt(bindingOf(call), { after: String(arrival), seq: String(seq) })

/** The place to begin after: that of the cursor, else the requested position, else the beginning. */
export const startPlaceOf = (call: EventsCall, cursor: string | undefined): FeedPlace => {
  const key = keyInCursor(call, cursor, { binding: bindingOf(call), schema: cursorSchema })
  return key === undefined
    ? placeBefore(BigInt(call.query.from_position ?? 0))
    : { arrival: BigInt(key.after), seq: BigInt(key.seq) }
}

/**
 * Throws Problem for a place after the end of the log, as of a cursor from before a restore of the event store: its reader
 * would miss every fact up to there. `settled`: the checkpoint of the facts, which is behind while they are rebuilt.
 */
export const requireInLog = async ({ ledger }: EventsCall, { arrival }: FeedPlace, settled: bigint): Promise<void> => {
  if (arrival <= settled || (await reaches(ledger.store, arrival, ledger.world))) return
  throw new Problem('cursor_expired', {
    detail:
      'The ledger was restored from a backup, and this cursor is from a part that it lost. Read again from the beginning, or ' +
      'from the position that the operator names.',
  })
}

export type FactRow = FeedPlace & { readonly event: CloudEvent }
type FactsBatch = {
  readonly facts: readonly FactRow[]
  /** The place that the next reading begins after. */
  readonly end: FeedPlace
  readonly hasMore: boolean
}

type Run = (query: Query<FactsPageRow>) => Promise<FactsPageRow[]>

/** The next facts. A reading without matching facts still advances the place past those that the filters exclude. */
export const readFacts = async (call: EventsCall, after: FeedPlace, limit: number, run: Run): Promise<FactsBatch> => {
  const { subject, from_time } = call.query
  const { tenant } = call.principal
  const rows = await run(factsPage({ tenant, after, limit: limit + 1, types: typesFor(call), subject, from_time }))
  const factRows = rows.filter((row): row is FactsPageRow & FactRow => row.event !== null)
  const facts = factRows.slice(0, limit)
  const last = factRows.length > limit ? facts.at(-1) : rows.at(-1)
  return { facts, end: last ?? after, hasMore: factRows.length > limit || rows.at(-1)?.is_cut === true }
}
