import { BEHIND_REASON } from '../../projections/parkedReasons.ts'
import { partsOf } from '../../streams/aggregate.ts'
import type { Sql, StoredEvent } from '../ports.ts'

/**
 * What waits for an operator: facts that no topic took, and events that no read model took. Each is a row in Postgres, where
 * it survives whoever parked it.
 */

export type ParkedFact = {
  /** The publisher, the id of a subscription, or the name of a read model. */
  readonly delivery: string
  readonly position: bigint
  /** The aggregate's id: the order that counts is that of a key. */
  readonly key: string
  readonly stream: string
  readonly revision: bigint
  readonly event_id: string
  /** Of the stored event: of a fact that could not be made there is no other. */
  readonly type: string
  readonly tenant_id: string
  readonly reason: string
  /** Zero for a fact that only waits behind another one of its key. */
  readonly attempts: number
  readonly first_failed_at: string
}

export type ParkedRequest = 'replay' | 'discard'
export type RequestedFact = ParkedFact & { readonly requested: ParkedRequest | null }

/** What can be said of an event without decoding it; an event that somebody else wrote may have any metadata. */
export const placeOf = (stored: StoredEvent) => {
  const { tenant } = stored.metadata
  return {
    position: stored.position,
    key: partsOf(stored.stream).id,
    stream: stored.stream,
    revision: stored.revision,
    event_id: stored.id,
    type: stored.type,
    tenant_id: typeof tenant === 'string' ? tenant : '',
  }
}

/** Of a fact that waits for nothing but an earlier one. */
export const BEHIND = { reason: BEHIND_REASON, attempts: 0 } as const

export const reasonOf = (error: unknown): string =>
  error instanceof Error ? `${error.name}: ${error.message}` : String(error)

const COLUMNS = [
  'delivery',
  'position',
  'key',
  'stream',
  'revision',
  'event_id',
  'type',
  'tenant_id',
  'reason',
  'attempts',
  'first_failed_at',
] as const satisfies readonly (keyof ParkedFact)[]

const INSERT = `insert into parked_facts (${COLUMNS.join(', ')})
  values (${COLUMNS.map((_, index) => `$${index + 1}`).join(', ')}) on conflict do nothing`

export const park = async (sql: Sql, facts: readonly ParkedFact[]): Promise<void> => {
  for (const fact of facts)
    await sql(
      INSERT,
      COLUMNS.map(column => fact[column]),
    )
}

export const parkedKeys = async (sql: Sql, delivery: string): Promise<Set<string>> =>
  new Set(
    (await sql<{ key: string }>('select distinct key from parked_facts where delivery = $1', [delivery])).map(
      ({ key }) => key,
    ),
  )

/** The keys that wait, each from the position of the first event that waits. */
export const parkedFrom = async (sql: Sql, delivery: string): Promise<Map<string, bigint>> => {
  const text = 'select key, min(position) as position from parked_facts where delivery = $1 group by key'
  const rows = await sql<{ key: string; position: bigint }>(text, [delivery])
  return new Map(rows.map(({ key, position }) => [key, position]))
}

export const requestedKeys = async (sql: Sql, delivery: string): Promise<readonly string[]> => {
  const asked = 'select distinct key from parked_facts where delivery = $1 and requested is not null'
  return (await sql<{ key: string }>(asked, [delivery])).map(({ key }) => key)
}

/** In the order in which they are to be delivered. */
export const parkedOf = (sql: Sql, delivery: string, key: string): Promise<RequestedFact[]> =>
  sql<RequestedFact>(
    `select ${COLUMNS.join(', ')}, requested from parked_facts where delivery = $1 and key = $2 order by position`,
    [delivery, key],
  )

export const release = async (sql: Sql, { delivery, position }: ParkedFact): Promise<void> => {
  await sql('delete from parked_facts where delivery = $1 and position = $2', [delivery, position])
}

/** Lets go of a fact for good, for a reader whose checkpoint may still be before it: it leaves the fact out from now on. */
export const discard = async (sql: Sql, fact: ParkedFact): Promise<void> => {
  const values = [fact.delivery, fact.position]
  await sql('insert into discarded_events (delivery, position) values ($1, $2) on conflict do nothing', values)
  await release(sql, fact)
}

/** Notes that the stream begins with an event that was discarded: its later events can never be written. */
export const noteWithoutBeginning = async (sql: Sql, { delivery, position, key }: ParkedFact): Promise<void> => {
  const text = 'insert into discarded_events (delivery, position, key) values ($1, $2, $3) on conflict do nothing'
  await sql(text, [delivery, position, key])
}

export const keysWithoutBeginning = async (sql: Sql, delivery: string): Promise<Set<string>> => {
  const text = 'select distinct key from discarded_events where delivery = $1 and key is not null'
  return new Set((await sql<{ key: string }>(text, [delivery])).map(({ key }) => key))
}

/** Of those that were discarded the ones behind this position, and forgets the others. */
export const discardedPositions = async (
  sql: Sql,
  delivery: string,
  after: bigint | 'start',
): Promise<ReadonlySet<bigint>> => {
  const passed = after === 'start' ? -1n : after
  await sql('delete from discarded_events where delivery = $1 and position <= $2', [delivery, passed])
  const text = 'select position from discarded_events where delivery = $1'
  return new Set((await sql<{ position: bigint }>(text, [delivery])).map(({ position }) => position))
}

/** The replay came no further than this fact: it, and those behind it, go on waiting. */
export const keepParked = async (sql: Sql, fact: ParkedFact, reason: string, attempts: number): Promise<void> => {
  const { delivery, key, position } = fact
  await sql('update parked_facts set requested = null where delivery = $1 and key = $2', [delivery, key])
  await sql('update parked_facts set reason = $3, attempts = attempts + $4 where delivery = $1 and position = $2', [
    delivery,
    position,
    reason,
    attempts,
  ])
}

/** A key that waits, as an operator sees it: the fact that failed, and how many wait with it. */
export type ParkedKey = ParkedFact & { readonly waiting: bigint; readonly requested: ParkedRequest | null }

/** What a delivery has parked of a tenant behind one position, up to and with another one. */
export const parkedBetween = (
  sql: Sql,
  { delivery, tenant_id }: Pick<ParkedFact, 'delivery' | 'tenant_id'>,
  after: bigint,
  to: bigint,
): Promise<ParkedFact[]> =>
  sql<ParkedFact>(
    `select ${COLUMNS.join(', ')} from parked_facts
      where delivery = $1 and tenant_id = $2 and position > $3 and position <= $4 order by position`,
    [delivery, tenant_id, after, to],
  )

/** Parked facts of these deliveries that their dead letter topics do not know of yet. */
export const unannounced = (sql: Sql, deliveries: readonly string[], limit: number): Promise<ParkedFact[]> =>
  sql<ParkedFact>(
    `select ${COLUMNS.join(', ')} from parked_facts
      where not announced and delivery <> 'publisher' and delivery = any($1::text[])
      order by delivery, position limit $2`,
    [deliveries, limit],
  )

export const markAnnounced = async (sql: Sql, facts: readonly ParkedFact[]): Promise<void> => {
  await sql(
    `update parked_facts set announced = true
      where (delivery, position) in (select * from unnest($1::text[], $2::bigint[]))`,
    [facts.map(({ delivery }) => delivery), facts.map(({ position }) => position)],
  )
}

export const parkedSummary = (sql: Sql): Promise<ParkedKey[]> =>
  sql<ParkedKey>(
    `select distinct on (delivery, key) ${COLUMNS.join(', ')}, requested,
      count(*) over (partition by delivery, key) as waiting
      from parked_facts order by delivery, key, position`,
  )

/** Asks the active process to replay a key, or to discard the fact at its head or all that waits. */
export const requestParked = async (
  sql: Sql,
  { delivery, key }: Pick<ParkedFact, 'delivery' | 'key'>,
  requested: ParkedRequest,
  only?: bigint,
): Promise<number> => {
  const values = [delivery, key, requested, ...(only === undefined ? [] : [only])]
  const asked = await sql(
    `update parked_facts set requested = $3 where delivery = $1 and key = $2
      ${only === undefined ? '' : 'and position = $4'} returning position`,
    values,
  )
  return asked.length
}

/**
 * Asks for everything that waits in a delivery: at a start, when a newer build may be able to do what an older one was not.
 * An earlier request of an operator stays as it is: an event that was to be discarded must not be written.
 */
export const requestAll = async (sql: Sql, delivery: string): Promise<void> => {
  await sql(`update parked_facts set requested = 'replay' where delivery = $1 and requested is null`, [delivery])
}
