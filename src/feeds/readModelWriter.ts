import { type CopyRows, Gap } from '../../projections/projection.ts'
import type { AnyEvent } from '../../streams/decider.ts'
import type { Recorded } from '../../streams/envelope.ts'
import { type Database, type EventStore, type Sql, type StoredEvent, unlessUnavailable, type World } from '../ports.ts'
import { fenceCheckpoint, moveCheckpoint } from './checkpoints.ts'
import { decode } from './decode.ts'
import {
  type EventReference,
  type Failure,
  insertDeadLetters,
  keysWithDiscardedBeginning,
  noteDiscarded,
  noteDiscardedBeginning,
  type DeadLetter,
  reasonOf,
  referenceOf,
  requestReplayOfAll,
} from './deadLetters.ts'
import { openParking, type Parking, storedEventOf, isTransient } from './parking.ts'
import { openParkingRecord, ParkedBefore, type ParkingRecord } from './parkingRecord.ts'
import type { ReadModel } from './readModel.ts'
import type { SerialQueue } from '../lib/serialQueue.ts'
import type { Timer } from './timer.ts'

/**
 * An event that cannot be decoded, or whose row the database refuses, is poison: it is parked with every later event of
 * its stream (parking.ts), and other streams continue. An error of the table itself throws.
 */

/** A read model in one run of the projector. */
export type OpenReadModel = {
  readonly model: ReadModel
  position: bigint
  readonly parking: Parking
  /** Whether dead letters may be replayed once the model has reached the position. */
  readonly mayReplay: (reached: bigint) => Promise<boolean>
  /** The keys whose first event an operator has discarded. */
  readonly withoutBeginning: Set<string>
}

export type ReadModelWriterDependencies = {
  readonly database: Database
  readonly store: Pick<EventStore, 'append' | 'readStream'>
  readonly world: World
}

export type ProjectorRun = { readonly epoch: bigint; readonly queue: SerialQueue; readonly timer: Timer }

/** The row continues with the next event; a stream without a row never gets one, which a rebuild must know. */
const discard = async (
  sql: Sql,
  { model, withoutBeginning }: Pick<OpenReadModel, 'model' | 'withoutBeginning'>,
  event: DeadLetter,
): Promise<void> => {
  if (model.skipEvent === undefined || (await model.skipEvent(sql, event))) return noteDiscarded(sql, event)
  await noteDiscardedBeginning(sql, event)
  withoutBeginning.add(event.key)
}

/** An event that was parked before is refused, which parks it and the later ones of its key. */
const refusingParked = (model: ReadModel, { hasParked }: ParkingRecord): ReadModel => ({
  ...model,
  write: (sql, events, copy) => {
    if (events.some(({ position }) => hasParked(position))) throw new ParkedBefore()
    return model.write(sql, events, copy)
  },
})

/**
 * Allows replays from the position of an event that this run appends, and then requests one of all dead letters: a
 * newer build may be able to process them.
 */
const replaysAfterEnd = (sql: Sql, name: string, record: ParkingRecord): OpenReadModel['mayReplay'] => {
  let end: bigint | undefined
  let mayReplay = false
  return async reached => {
    // While the store takes no event, the read models continue without replays.
    end ??= await unlessUnavailable(record.beginReplay())
    if (mayReplay || end === undefined || reached < end) return mayReplay
    await requestReplayOfAll(sql, name)
    mayReplay = true
    return true
  }
}

/** `position`: the checkpoint of the model, which this run has acquired. */
export const openReadModel = async (
  { database, store, world }: ReadModelWriterDependencies,
  model: ReadModel,
  position: bigint,
  { epoch, queue, timer }: ProjectorRun,
): Promise<OpenReadModel> => {
  const withoutBeginning = await keysWithDiscardedBeginning(database.sql, model.name)
  const { writeLate = (sql, event) => model.write(sql, [event]) } = model
  const record = model.writeLate && (await openParkingRecord({ store, world }))
  const parking = await openParking({
    name: model.name,
    database,
    world,
    queue,
    timer,
    fence: fenceCheckpoint(model.name, epoch),
    replaysAtStart: record === undefined,
    beforeParking: async rows => {
      const failed = rows.filter(({ attempts }) => attempts > 0)
      await record?.park(failed.map(parked => parked.position))
    },
    replay: async parked => {
      const stored = await storedEventOf(store, parked)
      return { ok: true, commit: sql => writeLate(sql, decode(stored).recorded) }
    },
    discard: (sql, parked) => discard(sql, { model, withoutBeginning }, parked),
  })
  const opened = { position, parking, withoutBeginning }
  if (record === undefined) return { model, ...opened, mayReplay: async () => true }
  const mayReplay = replaysAfterEnd(database.sql, model.name, record)
  return { model: refusingParked(model, record), ...opened, mayReplay }
}

export type Batch = {
  readonly stored: readonly StoredEvent[]
  /** The category and the id of the stream of each event, in the same order. */
  readonly streams: readonly { readonly category: string; readonly id: string }[]
  /** Decodes each event once for all read models. */
  readonly decoded: (stored: StoredEvent) => Recorded<AnyEvent>
  readonly position: bigint
  readonly epoch: bigint
  /** Called when each model has begun to write. */
  readonly begun?: (() => void) | undefined
}

/** SQLSTATE 22: the data cannot be stored. 23: a constraint of the table refuses it. */
const DATA_CLASSES: ReadonlySet<string> = new Set(['22', '23'])

/**
 * Whether the event is the cause. After a gap the feed must stop, except in a stream whose first event was discarded.
 */
const isPoison = ({ withoutBeginning }: OpenReadModel, error: unknown): boolean => {
  if (error instanceof Gap) return withoutBeginning.has(error.id)
  if (isTransient(error)) return false
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code !== 'string' || DATA_CLASSES.has(code.slice(0, 2))
}

/** The events of the batch that are new to the model: those that it can write, and those whose key is parked. */
const newEventsOf = ({ model, position, parking }: OpenReadModel, { stored, streams }: Batch) => {
  const categories = new Set(model.categories)
  const flowing: StoredEvent[] = []
  const waiting: EventReference[] = []
  for (const [index, { category, id }] of streams.entries()) {
    const event = stored[index]
    if (event === undefined || !categories.has(category) || event.position <= position) continue
    if (parking.isParked(id)) waiting.push(referenceOf(event))
    else flowing.push(event)
  }
  return { flowing, waiting }
}

const writeOne = async (sql: Sql, readModel: OpenReadModel, batch: Batch, copy?: CopyRows): Promise<void> => {
  const { flowing, waiting } = newEventsOf(readModel, batch)
  if (flowing.length > 0) await readModel.model.write(sql, flowing.map(batch.decoded), copy)
  if (waiting.length > 0) await insertDeadLetters(sql, readModel.parking.rowsOf(waiting))
}

/**
 * The rows of a model are made while Postgres executes the statements of those before it. The transaction must not end
 * while one may still send a statement, so the first error is thrown when all have ended.
 */
const writeEach = async (sql: Sql, models: readonly OpenReadModel[], batch: Batch, copy?: CopyRows): Promise<void> => {
  const writes: Promise<void>[] = []
  for (const readModel of models) {
    const write = writeOne(sql, readModel, batch, copy)
    write.catch(() => undefined)
    writes.push(write)
    // The statement leaves the process now; otherwise it would wait until the rows of all models are made.
    await new Promise(resolve => setImmediate(resolve))
  }
  batch.begun?.()
  await Promise.all(writes).finally(() => Promise.allSettled(writes))
}

/**
 * Rows and checkpoints move in one transaction. `copied` fails where rows are there already, after a change by hand:
 * then the batch can be `inserted`.
 */
export const writeTogether = async (
  { database }: ReadModelWriterDependencies,
  readModels: readonly OpenReadModel[],
  batch: Batch,
  how: 'copied' | 'inserted',
): Promise<void> => {
  const lagging = readModels.filter(({ position }) => position < batch.position)
  if (lagging.length === 0) return
  await database.transaction(async (sql, copy) => {
    // The checkpoints are moved first: their row locks keep a process that was replaced from writing beside its successor.
    const names = lagging.map(({ model }) => model.name)
    await moveCheckpoint(sql, names, batch.position, batch.epoch)
    await writeEach(sql, lagging, batch, how === 'copied' ? copy : undefined)
  })
  for (const readModel of lagging) readModel.position = batch.position
}

/** Writes the events. Returns the error if one of them is poison, with nothing written; any other error throws. */
const writeUnlessPoison = async (
  sql: Sql,
  readModel: OpenReadModel,
  events: readonly StoredEvent[],
  batch: Batch,
): Promise<unknown> => {
  await sql('savepoint apart')
  try {
    await readModel.model.write(sql, events.map(batch.decoded))
    await sql('release savepoint apart')
    return undefined
  } catch (error) {
    if (!isPoison(readModel, error)) throw error
    await sql('rollback to savepoint apart')
    return error
  }
}

type Poisoned = { readonly events: readonly StoredEvent[]; readonly failure: Failure }

/**
 * Writes all it can, and finds streams with poison by halving. Returns the poison with the later events of its stream.
 */
const writeByHalves = async (
  sql: Sql,
  readModel: OpenReadModel,
  streams: readonly (readonly StoredEvent[])[],
  batch: Batch,
): Promise<readonly Poisoned[]> => {
  if ((await writeUnlessPoison(sql, readModel, streams.flat(), batch)) === undefined) return []
  const [first = [], ...others] = streams
  if (others.length > 0) {
    const middle = Math.ceil(streams.length / 2)
    const earlier = await writeByHalves(sql, readModel, streams.slice(0, middle), batch)
    return [...earlier, ...(await writeByHalves(sql, readModel, streams.slice(middle), batch))]
  }
  for (const [index, event] of first.entries()) {
    const error = await writeUnlessPoison(sql, readModel, [event], batch)
    if (error !== undefined) return [{ events: first.slice(index), failure: { reason: reasonOf(error), attempts: 1 } }]
  }
  return []
}

/**
 * All but the poison, in the transaction that moves the checkpoint, whose row lock keeps a successor out until the end.
 */
const writeWithoutPoison = async (readModel: OpenReadModel, batch: Batch): Promise<void> => {
  const { model, parking } = readModel
  const { flowing, waiting } = newEventsOf(readModel, batch)
  await parking.parkInTransaction(async sql => {
    await moveCheckpoint(sql, [model.name], batch.position, batch.epoch)
    const streams = [...Map.groupBy(flowing, ({ stream }) => stream).values()]
    const poisoned = await writeByHalves(sql, readModel, streams, batch)
    const failed = poisoned.flatMap(({ events, failure }) => parking.rowsOf(events.map(referenceOf), failure))
    return [...parking.rowsOf(waiting), ...failed]
  })
  readModel.position = batch.position
}

/** Writes the batch and parks its poison. Returns the reason if the model cannot continue. */
export const writeAlone = async (
  dependencies: ReadModelWriterDependencies,
  readModel: OpenReadModel,
  batch: Batch,
): Promise<unknown> => {
  const whole = () => writeTogether(dependencies, [readModel], batch, 'inserted')
  for (const write of [whole, () => writeWithoutPoison(readModel, batch)])
    try {
      await write()
      return undefined
    } catch (error) {
      if (isTransient(error)) throw error
      if (!isPoison(readModel, error)) return error
    }
  return new Error(`${readModel.model.name} takes nothing of a batch.`)
}
