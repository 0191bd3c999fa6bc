import type { CopyRows } from '../../../projections/projection.ts'
import { partsOf } from '../../../streams/aggregate.ts'
import type { EventStore, Sql, StoredEvent } from '../../ports.ts'
import { decode } from '../decode.ts'
import {
  discardedAmong,
  type EventReference,
  firstPositionsOfKeys,
  keysWithDiscardedBeginning,
  referenceOf,
} from '../deadLetters.ts'
import { storedEventOf } from '../parking.ts'
import type { Rebuildable } from './rebuildable.ts'

/**
 * Leaves out what the live tables have not: dead letters and the later ones of their keys are held until they are
 * replayed or discarded, discarded events are skipped. So both have the same events at the same position.
 */

const COLUMNS = 'position, key, stream, revision, event_id, type, tenant_id'

const heldEvents = (sql: Sql, projection: string): Promise<EventReference[]> =>
  sql<EventReference>(
    `select ${COLUMNS} from rebuild_held_events
      where projection = $1 and generation = 'building' order by position`,
    [projection],
  )

const hold = async (sql: Sql, projection: string, events: readonly EventReference[]): Promise<void> => {
  for (const { position, key, stream, revision, event_id, type, tenant_id } of events)
    await sql(
      `insert into rebuild_held_events (projection, generation, ${COLUMNS})
        values ($1, 'building', $2, $3, $4, $5, $6, $7, $8) on conflict do nothing`,
      [projection, position, key, stream, revision, event_id, type, tenant_id],
    )
}

/** The present state of parking. Parked keys are read first: an event that is discarded between the reads is then still held. */
type Parked = {
  readonly firstOfKey: ReadonlyMap<string, bigint>
  readonly discarded: ReadonlySet<bigint>
  readonly withoutBeginning: ReadonlySet<string>
}

const parkedNow = async (sql: Sql, name: string, positions: readonly bigint[]): Promise<Parked> => {
  const firstOfKey = await firstPositionsOfKeys(sql, name)
  const discarded = await discardedAmong(sql, name, positions)
  return { firstOfKey, discarded, withoutBeginning: await keysWithDiscardedBeginning(sql, name) }
}

const isParked = ({ firstOfKey }: Parked, { key, position }: Pick<EventReference, 'key' | 'position'>): boolean =>
  position >= (firstOfKey.get(key) ?? position + 1n)

const isDiscarded = ({ discarded, withoutBeginning }: Parked, { key, position }: EventReference): boolean =>
  discarded.has(position) || withoutBeginning.has(key)

type Store = Pick<EventStore, 'readStream'>

/** Writes the held events that are parked no longer, in their order. Resolves to the keys of those that are still held. */
const releaseHeld = async (sql: Sql, { projection, model }: Rebuildable, store: Store) => {
  const held = await heldEvents(sql, projection)
  if (held.length === 0) return new Set()
  const positions = held.map(({ position }) => position)
  const parked = await parkedNow(sql, model.name, positions)
  const still = new Set<string>()
  for (const event of held) {
    if (still.has(event.key) || isParked(parked, event)) {
      still.add(event.key)
      continue
    }
    if (isDiscarded(parked, event)) await model.skipEvent?.(sql, event)
    else await model.write(sql, [decode(await storedEventOf(store, event)).recorded])
    await sql(`delete from rebuild_held_events where projection = $1 and generation = 'building' and position = $2`, [
      projection,
      event.position,
    ])
  }
  return still
}

/** The statements of a transaction; without `copy` rows are inserted. */
export type Transaction = { readonly sql: Sql; readonly copy?: CopyRows | undefined }

/** Writes runs of events between discarded ones, so each is skipped in its place. */
const writeFlowing = async (
  { sql, copy }: Transaction,
  { model }: Rebuildable,
  events: readonly StoredEvent[],
  parked: Parked,
): Promise<void> => {
  let run: StoredEvent[] = []
  const write = async (): Promise<void> => {
    if (run.length > 0)
      await model.write(
        sql,
        run.map(stored => decode(stored).recorded),
        copy,
      )
    run = []
  }
  for (const stored of events) {
    const event = referenceOf(stored)
    if (!isDiscarded(parked, event)) {
      run.push(stored)
      continue
    }
    await write()
    await model.skipEvent?.(sql, event)
  }
  await write()
}

/** The search path of the transaction names the tables that are being built, which have no rows of the events. */
export const writeEvents = async (
  transaction: Transaction,
  rebuildable: Rebuildable,
  store: Store,
  events: readonly StoredEvent[],
): Promise<void> => {
  const { projection, model } = rebuildable
  const { sql } = transaction
  const held = await releaseHeld(sql, rebuildable, store)
  const own = events.filter(({ stream }) => model.categories.includes(partsOf(stream).category))
  if (own.length === 0) return
  const positions = own.map(({ position }) => position)
  const parked = await parkedNow(sql, model.name, positions)
  const { waiting = [], flowing = [] } = Object.groupBy(own, stored => {
    const event = referenceOf(stored)
    return held.has(event.key) || isParked(parked, event) ? 'waiting' : 'flowing'
  })
  await hold(sql, projection, waiting.map(referenceOf))
  await writeFlowing(transaction, rebuildable, flowing, parked)
}
