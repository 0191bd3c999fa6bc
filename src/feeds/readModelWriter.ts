import { Gap } from '../../projections/projection.ts'
import { partsOf } from '../../streams/aggregate.ts'
import type { AnyEvent } from '../../streams/decider.ts'
import type { Recorded } from '../../streams/envelope.ts'
import { type Database, type EventStore, type Sql, type StoredEvent, Unavailable, type World } from '../ports.ts'
import { moveCheckpoint, Replaced } from './checkpoints.ts'
import { decode } from './decode.ts'
import {
  BEHIND,
  keysWithoutBeginning,
  park,
  type ParkedFact,
  parkedKeys,
  placeOf,
  reasonOf,
  requestAll,
} from './deadLetters.ts'
import type { ReadModel } from './readModels.ts'

/**
 * The read models as the projector writes them. An event that cannot be decoded, or whose row the database does not take,
 * is poison for the row of its stream alone: it is parked with every later event of that stream, as in delivery.ts, and
 * the other rows go on. What is wrong with the table itself is not the event's fault, and throws.
 */

/** A read model, and how far it has got. */
export type OpenReadModel = {
  readonly model: ReadModel
  position: bigint
  /** The keys of it that wait. */
  readonly parked: Set<string>
  /** The keys whose first event an operator has discarded. */
  readonly withoutBeginning: Set<string>
}

/** What waits is tried once more: it may be a newer build that takes over. */
export const openReadModel = async (sql: Sql, model: ReadModel, position: bigint): Promise<OpenReadModel> => {
  await requestAll(sql, model.name)
  const [parked, withoutBeginning] = [await parkedKeys(sql, model.name), await keysWithoutBeginning(sql, model.name)]
  return { model, position, parked, withoutBeginning }
}

export type Batch = {
  readonly stored: readonly StoredEvent[]
  /** Decodes once, whoever asks. */
  readonly decoded: (stored: StoredEvent) => Recorded<AnyEvent>
  readonly position: bigint
  readonly epoch: bigint
}

export const batchOf = (stored: readonly StoredEvent[], position: bigint, epoch: bigint): Batch => {
  const known = new Map<StoredEvent, Recorded<AnyEvent>>()
  const decoded = (event: StoredEvent): Recorded<AnyEvent> => {
    const recorded = known.get(event) ?? decode(event).recorded
    known.set(event, recorded)
    return recorded
  }
  return { stored, decoded, position, epoch }
}

export const isPassing = (error: unknown): boolean => error instanceof Unavailable || error instanceof Replaced

/** SQLSTATE 22: the data cannot be stored. 23: a constraint of the table refuses it. */
const DATA_CLASSES: ReadonlySet<string> = new Set(['22', '23'])

/**
 * Whether the event is to blame. A gap is not poison: something between was not seen, and the feed must stop; unless it is
 * known why, which is so in a stream whose beginning was discarded.
 */
const isPoison = ({ withoutBeginning }: OpenReadModel, error: unknown): boolean => {
  if (error instanceof Gap) return withoutBeginning.has(error.id)
  if (isPassing(error)) return false
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code !== 'string' || DATA_CLASSES.has(code.slice(0, 2))
}

const keyOf = ({ stream }: StoredEvent): string => partsOf(stream).id

/** The events of the batch that the member has not seen yet: those that it can write, and those whose key waits. */
const newsFor = ({ model, position, parked }: OpenReadModel, { stored }: Batch) => {
  const news = stored.filter(
    event => event.position > position && model.categories.includes(partsOf(event.stream).category),
  )
  if (parked.size === 0) return { flowing: news, waiting: [] }
  const { flowing = [], waiting = [] } = Object.groupBy(news, event =>
    parked.has(keyOf(event)) ? 'waiting' : 'flowing',
  )
  return { flowing, waiting }
}

type Failure = { readonly reason: string; readonly attempts: number }

const rowsOf = (
  { model }: OpenReadModel,
  events: readonly StoredEvent[],
  at: string,
  failure?: Failure,
): ParkedFact[] =>
  events.map((event, index) => ({
    delivery: model.name,
    ...placeOf(event),
    ...(index === 0 && failure ? failure : BEHIND),
    first_failed_at: at,
  }))

export type ReadModelWriterDependencies = {
  readonly database: Database
  readonly store: Pick<EventStore, 'readStream'>
  readonly world: World
}

const now = ({ world }: ReadModelWriterDependencies): string => new Date(world.now()).toISOString()

/** Rows and checkpoints move in one transaction, for all of the given members or for none. */
export const writeTogether = async (
  parts: ReadModelWriterDependencies,
  members: readonly OpenReadModel[],
  batch: Batch,
): Promise<void> => {
  const behind = members.filter(({ position }) => position < batch.position)
  if (behind.length === 0) return
  await parts.database.transaction(async sql => {
    // The checkpoints go first: their row locks are where a process that was replaced meets the one that replaced it.
    const names = behind.map(({ model }) => model.name)
    await moveCheckpoint(sql, names, batch.position, batch.epoch)
    for (const member of behind) {
      const { flowing, waiting } = newsFor(member, batch)
      if (flowing.length > 0) await member.model.write(sql, flowing.map(batch.decoded))
      if (waiting.length > 0) await park(sql, rowsOf(member, waiting, now(parts)))
    }
  })
  for (const member of behind) member.position = batch.position
}

/** The error of an event that is to blame; everything else throws. Nothing of a write that failed is left behind. */
const poisonIn = async (
  sql: Sql,
  member: OpenReadModel,
  events: readonly StoredEvent[],
  batch: Batch,
): Promise<unknown> => {
  await sql('savepoint apart')
  try {
    await member.model.write(sql, events.map(batch.decoded))
    await sql('release savepoint apart')
    return undefined
  } catch (error) {
    if (!isPoison(member, error)) throw error
    await sql('rollback to savepoint apart')
    return error
  }
}

type Poisoned = { readonly events: readonly StoredEvent[]; readonly failure: Failure }

/**
 * Writes all that can be written: a half in which nothing is poison is one write. Of a stream with poison the events
 * before it are written; the poison and those behind it are returned.
 */
const sift = async (
  sql: Sql,
  member: OpenReadModel,
  streams: readonly (readonly StoredEvent[])[],
  batch: Batch,
): Promise<readonly Poisoned[]> => {
  if ((await poisonIn(sql, member, streams.flat(), batch)) === undefined) return []
  const [first = [], ...others] = streams
  if (others.length > 0) {
    const middle = Math.ceil(streams.length / 2)
    const earlier = await sift(sql, member, streams.slice(0, middle), batch)
    return [...earlier, ...(await sift(sql, member, streams.slice(middle), batch))]
  }
  for (const [index, event] of first.entries()) {
    const error = await poisonIn(sql, member, [event], batch)
    if (error !== undefined) return [{ events: first.slice(index), failure: { reason: reasonOf(error), attempts: 1 } }]
  }
  return []
}

/**
 * Everything but the poison, in the one transaction that moves the checkpoint: the row lock of the checkpoint keeps a
 * successor out until the end, and a reader sees the whole batch or nothing of it.
 */
const writeWithoutPoison = async (
  parts: ReadModelWriterDependencies,
  member: OpenReadModel,
  batch: Batch,
): Promise<void> => {
  const { flowing, waiting } = newsFor(member, batch)
  const rows = rowsOf(member, waiting, now(parts))
  await parts.database.transaction(async sql => {
    await moveCheckpoint(sql, [member.model.name], batch.position, batch.epoch)
    const streams = [...Map.groupBy(flowing, ({ stream }) => stream).values()]
    for (const { events, failure } of await sift(sql, member, streams, batch))
      rows.push(...rowsOf(member, events, now(parts), failure))
    await park(sql, rows)
  })
  member.position = batch.position
  for (const { key } of rows) member.parked.add(key)
}

/** Why the member cannot go on; undefined when it has taken the batch, poison parked. */
export const writeApart = async (
  parts: ReadModelWriterDependencies,
  member: OpenReadModel,
  batch: Batch,
): Promise<unknown> => {
  for (const write of [() => writeTogether(parts, [member], batch), () => writeWithoutPoison(parts, member, batch)])
    try {
      await write()
      return undefined
    } catch (error) {
      if (isPassing(error)) throw error
      if (!isPoison(member, error)) return error
    }
  return new Error(`${member.model.name} takes nothing of a batch.`)
}
