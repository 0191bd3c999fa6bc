import type { Sql, StoredEvent } from '../ports.ts'
import { moveCheckpoint } from './checkpoints.ts'
import { decode } from './decode.ts'
import { isPassing, type OpenReadModel, type ReadModelWriterDependencies } from './readModelWriter.ts'
import {
  keepParked,
  noteWithoutBeginning,
  type ParkedFact,
  parkedOf,
  reasonOf,
  release,
  type RequestedFact,
  requestedKeys,
} from './deadLetters.ts'
import type { ReadModel } from './readModels.ts'

/** The requests of operators for events that a read model has parked: each is written now, or given up for good. */

const storedAgain = async (
  { store }: ReadModelWriterDependencies,
  { stream, revision, position }: ParkedFact,
): Promise<StoredEvent> => {
  // Not every store tells the position of an event that is read from its stream.
  for await (const event of store.readStream(stream, { from: revision, limit: 1 })) return { ...event, position }
  throw new Error(`${stream} has no event ${revision} any more.`)
}

const writeOf = (model: ReadModel): NonNullable<ReadModel['writeLate']> =>
  model.writeLate ?? ((sql, event) => model.write(sql, [event]))

/** Gives up an event of a row for good. The row goes on from the next event of its stream, where there is a row. */
const leaveOut = async (sql: Sql, { model, withoutBeginning }: OpenReadModel, fact: ParkedFact): Promise<void> => {
  if (model.leaveOut === undefined || (await model.leaveOut(sql, fact))) return
  await noteWithoutBeginning(sql, fact)
  withoutBeginning.add(fact.key)
}

const serveOne = async (
  parts: ReadModelWriterDependencies,
  member: OpenReadModel,
  fact: RequestedFact,
  epoch: bigint,
): Promise<boolean> => {
  const { database } = parts
  const { model } = member
  try {
    const event = fact.requested === 'discard' ? undefined : await storedAgain(parts, fact)
    await database.transaction(async sql => {
      await moveCheckpoint(sql, [model.name], fact.position, epoch)
      if (event) await writeOf(model)(sql, decode(event).recorded)
      else await leaveOut(sql, member, fact)
      await release(sql, fact)
    })
    return true
  } catch (error) {
    if (isPassing(error)) throw error
    await database.transaction(async sql => {
      await moveCheckpoint(sql, [model.name], fact.position, epoch)
      await keepParked(sql, fact, reasonOf(error), 1)
    })
    return false
  }
}

const serveKey = async (
  parts: ReadModelWriterDependencies,
  member: OpenReadModel,
  key: string,
  epoch: bigint,
): Promise<void> => {
  for (const fact of await parkedOf(parts.database.sql, member.model.name, key))
    if (fact.requested === null || !(await serveOne(parts, member, fact, epoch))) return
  member.parked.delete(key)
}

/** Does what operators ask for, key by key. */
export const serveRequests = async (
  parts: ReadModelWriterDependencies,
  member: OpenReadModel,
  epoch: bigint,
): Promise<void> => {
  for (const key of await requestedKeys(parts.database.sql, member.model.name))
    await serveKey(parts, member, key, epoch)
}
