import { BEHIND_REASON } from '../../projections/deadLetterReasons.ts'
import { partsOf } from '../../streams/aggregate.ts'
import type { Sql, StoredEvent } from '../ports.ts'
import { inRanges } from './positionRanges.ts'

/** Facts that could not be sent, and events that a read model or process manager could not process (parking.ts). */

/** The members of an event that are known without decoding it. */
export type EventReference = {
  readonly position: bigint
  /** The id of the aggregate: the order of events is kept within a key. */
  readonly key: string
  readonly stream: string
  readonly revision: bigint
  readonly event_id: string
  /** The type of the stored event, not of its fact: an event that cannot be decoded has no fact. */
  readonly type: string
  readonly tenant_id: string
}

/** Why an event is parked, and after how many attempts. */
export type Failure = { readonly reason: string; readonly attempts: number }

export type DeadLetter = EventReference &
  Failure & {
    /** The publisher, the id of a subscription, or the name of a read model or of a process. */
    readonly delivery: string
    readonly first_failed_at: string
  }

export type DeadLetterRequest = 'replay' | 'discard'
export type DeadLetterWithRequest = DeadLetter & { readonly requested: DeadLetterRequest | null }

/** The metadata is not trusted: another program may have appended the event. */
export const referenceOf = (stored: StoredEvent): EventReference => {
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

/** Instead of a failure, for an event that only waits behind an earlier one of its key. */
export const WAITS_BEHIND: Failure = { reason: BEHIND_REASON, attempts: 0 }

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
] as const satisfies readonly (keyof DeadLetter)[]

const INSERT = `insert into parked_facts (${COLUMNS.join(', ')})
  values (${COLUMNS.map((_, index) => `$${index + 1}`).join(', ')}) on conflict do nothing`

export const insertDeadLetters = async (sql: Sql, events: readonly DeadLetter[]): Promise<void> => {
  for (const event of events)
    await sql(
      INSERT,
      COLUMNS.map(column => event[column]),
    )
}

/** The parked keys, each with the position of its first event. */
export const firstPositionsOfKeys = async (sql: Sql, delivery: string): Promise<Map<string, bigint>> => {
  const text = 'select key, min(position) as position from parked_facts where delivery = $1 group by key'
  const rows = await sql<{ key: string; position: bigint }>(text, [delivery])
  return new Map(rows.map(({ key, position }) => [key, position]))
}

/** The keys with a request, in the order of their first events: an event may need one of another key. */
export const requestedKeys = async (sql: Sql, delivery: string): Promise<readonly string[]> => {
  const text = `select key from parked_facts where delivery = $1 and requested is not null
    group by key order by min(position), key`
  return (await sql<{ key: string }>(text, [delivery])).map(({ key }) => key)
}

/** The dead letters of a key, in the order in which they are to be processed. */
export const deadLettersOfKey = (sql: Sql, delivery: string, key: string): Promise<DeadLetterWithRequest[]> =>
  sql<DeadLetterWithRequest>(
    `select ${COLUMNS.join(', ')}, requested from parked_facts where delivery = $1 and key = $2 order by position`,
    [delivery, key],
  )

export const release = async (sql: Sql, { delivery, position }: DeadLetter): Promise<void> => {
  await sql('delete from parked_facts where delivery = $1 and position = $2', [delivery, position])
}

/** Notes that the event is to be skipped when it is read again: by a process manager at its start, or by a rebuild. */
export const noteDiscarded = async (sql: Sql, { delivery, position }: DeadLetter): Promise<void> => {
  const text = 'insert into discarded_events (delivery, position) values ($1, $2) on conflict do nothing'
  await sql(text, [delivery, position])
}

/** Notes that the first event of a stream was discarded: the stream has no row, so its later events cannot be written. */
export const noteDiscardedBeginning = async (sql: Sql, { delivery, position, key }: DeadLetter): Promise<void> => {
  const text = 'insert into discarded_events (delivery, position, key) values ($1, $2, $3) on conflict do nothing'
  await sql(text, [delivery, position, key])
}

export const keysWithDiscardedBeginning = async (sql: Sql, delivery: string): Promise<Set<string>> => {
  const text = 'select distinct key from discarded_events where delivery = $1 and key is not null'
  return new Set((await sql<{ key: string }>(text, [delivery])).map(({ key }) => key))
}

/** Of the events of a read model at these positions, those that were discarded. */
export const discardedAmong = async (
  sql: Sql,
  delivery: string,
  positions: readonly bigint[],
): Promise<ReadonlySet<bigint>> => {
  const text = 'select position from discarded_events where delivery = $1 and position = any($2::bigint[])'
  const rows = await sql<{ position: bigint }>(text, [delivery, positions])
  return new Set(rows.map(({ position }) => position))
}

/** The positions of discarded events after the checkpoint. Earlier ones are deleted, since they are not read again. */
export const pruneAndReadDiscarded = async (
  sql: Sql,
  delivery: string,
  after: bigint | 'start',
): Promise<ReadonlySet<bigint>> => {
  const passed = after === 'start' ? -1n : after
  await sql('delete from discarded_events where delivery = $1 and position <= $2', [delivery, passed])
  const text = 'select position from discarded_events where delivery = $1'
  return new Set((await sql<{ position: bigint }>(text, [delivery])).map(({ position }) => position))
}

/** The replay of a key ended at this event, which failed again. A request to discard that came meanwhile stays. */
export const recordFailedReplay = async (
  sql: Sql,
  { delivery, key, position }: DeadLetter,
  { reason, attempts }: Failure,
): Promise<void> => {
  const text = `update parked_facts set requested = null where delivery = $1 and key = $2 and requested = 'replay'`
  await sql(text, [delivery, key])
  await sql('update parked_facts set reason = $3, attempts = attempts + $4 where delivery = $1 and position = $2', [
    delivery,
    position,
    reason,
    attempts,
  ])
}

/** A parked key as operators see it: its first event; `waiting` is the number of its dead letters. */
export type DeadLetterKey = DeadLetter & { readonly waiting: bigint; readonly requested: DeadLetterRequest | null }

/** The events of a tenant that a delivery has parked, after `after` and up to and including `to`. */
export const deadLettersBetween = (
  sql: Sql,
  { delivery, tenant_id }: Pick<DeadLetter, 'delivery' | 'tenant_id'>,
  after: bigint,
  to: bigint,
): Promise<DeadLetter[]> =>
  sql<DeadLetter>(
    `select ${COLUMNS.join(', ')} from parked_facts
      where delivery = $1 and tenant_id = $2 and position > $3 and position <= $4 order by position`,
    [delivery, tenant_id, after, to],
  )

/** Dead letters of a subscription that were not yet published on its dead letter topic. */
export const unannounced = (sql: Sql, subscription: string, limit: number): Promise<DeadLetter[]> =>
  sql<DeadLetter>(
    `select ${COLUMNS.join(', ')} from parked_facts
      where not announced and delivery <> 'publisher' and delivery = $1 order by position limit $2`,
    [subscription, limit],
  )

export const markAnnounced = async (sql: Sql, facts: readonly DeadLetter[]): Promise<void> => {
  await sql(
    `update parked_facts set announced = true
      where (delivery, position) in (select * from unnest($1::text[], $2::bigint[]))`,
    [facts.map(({ delivery }) => delivery), facts.map(({ position }) => position)],
  )
}

export const deadLetterSummary = (sql: Sql): Promise<DeadLetterKey[]> =>
  sql<DeadLetterKey>(
    `select distinct on (delivery, key) ${COLUMNS.join(', ')}, requested,
      count(*) over (partition by delivery, key) as waiting
      from parked_facts order by delivery, key, position`,
  )

/** Requests a replay or discard of the dead letters of a key, or of the one at `only`. Resolves to their number. */
export const requestForDeadLetters = async (
  sql: Sql,
  { delivery, key }: Pick<DeadLetter, 'delivery' | 'key'>,
  requested: DeadLetterRequest,
  only?: bigint,
): Promise<number> => {
  const values = [delivery, key, requested, ...(only === undefined ? [] : [only])]
  const rows = await sql(
    `update parked_facts set requested = $3 where delivery = $1 and key = $2
      ${only === undefined ? '' : 'and position = $4'} returning position`,
    values,
  )
  return rows.length
}

const rowsOf = (delivery: string) => ({ rows: 'parked_facts where delivery = $1', values: [delivery] })

/** Requests of operators stay as they are: an event that is to be discarded must not be replayed. */
export const requestReplayOfAll = (sql: Sql, delivery: string): Promise<void> =>
  inRanges(sql, rowsOf(delivery), (after, last) =>
    sql(
      `update parked_facts set requested = 'replay'
        where delivery = $1 and position > $2 and position <= $3 and requested is null`,
      [delivery, after, last],
    ),
  )

export const deleteDeadLettersOf = (sql: Sql, delivery: string): Promise<void> =>
  inRanges(sql, rowsOf(delivery), (after, last) =>
    sql('delete from parked_facts where delivery = $1 and position > $2 and position <= $3', [delivery, after, last]),
  )
