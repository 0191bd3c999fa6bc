import type { AnyEvent } from '../../streams/decider.ts'
import type { Recorded } from '../../streams/envelope.ts'
import { moveCheckpoint, type Place, Replaced, takeCheckpoint } from '../feeds/checkpoints.ts'
import { decode } from '../feeds/decode.ts'
import {
  BEHIND,
  discard,
  discardedPositions,
  keepParked,
  park,
  type ParkedFact,
  parkedFrom,
  parkedOf,
  placeOf,
  reasonOf,
  release,
  requestAll,
  type RequestedFact,
  requestedKeys,
} from '../feeds/deadLetters.ts'
import type { Run } from '../feeds/subscriptionLoop.ts'
import { createTurns } from '../feeds/serialQueue.ts'
import { type Database, type EventStore, type Sql, type StoredEvent, Unavailable, type World } from '../ports.ts'
import type { OpenWork, Origin } from './openWork.ts'

/**
 * How a process takes in the log. An event that this build cannot read concerns its own key alone: it is parked with every
 * later one of that key, as in feeds/delivery.ts, and all others go on.
 *
 *   flowing ── an event of it cannot be read ──▶ parked: it and every later one of the key wait in Postgres
 *   parked  ── an operator has them replayed or discarded, or a run begins and can read them ──▶ flowing
 *
 * The checkpoint stays behind the oldest work that is open, so that a later run reads some events again. It meets them as
 * this one did: those before the first parked one of their key are taken, and one that was discarded is left out, for
 * which the discarded ones are kept until the checkpoint has passed them. A parked event that is replayed is kept until
 * what it began has ended, since the checkpoint may have passed it.
 */

export type IntakeDependencies = {
  readonly name: string
  readonly database: Database
  readonly store: Pick<EventStore, 'readStream'>
  readonly world: World
  readonly epoch: bigint
}

export type Receiver = {
  readonly open: Pick<OpenWork<unknown>, 'goOnAfter' | 'isHeld' | 'takeSettled'>
  readonly take: (recorded: Recorded<AnyEvent>, origin: Origin) => void
}

export type Intake = Pick<Run, 'after' | 'processBatch'> & {
  /** Does what operators ask for, and lets go of what has been settled. Asked as often as one likes. */
  readonly serve: () => Promise<void>
}

const SERVE_EVERY_MS = 500

const isPassing = (error: unknown): boolean => error instanceof Unavailable || error instanceof Replaced

const storedAgain = async (store: IntakeDependencies['store'], { stream, revision, position }: ParkedFact) => {
  // Not every store tells the position of an event that is read from its stream.
  for await (const event of store.readStream(stream, { from: revision, limit: 1 })) return { ...event, position }
  throw new Error(`${stream} has no event ${revision} any more.`)
}

/** The keys that wait, each from a position on, and the events that an operator has discarded. */
type Known = { readonly parked: Map<string, bigint>; readonly discarded: ReadonlySet<bigint> }

const knownOf = async ({ name, database: { sql } }: IntakeDependencies, after: Place): Promise<Known> => {
  await requestAll(sql, name)
  return { parked: await parkedFrom(sql, name), discarded: await discardedPositions(sql, name, after) }
}

export const openIntake = async (parts: IntakeDependencies, receiver: Receiver): Promise<Intake> => {
  const { name, database, world, epoch } = parts
  const after = await takeCheckpoint(database.sql, name, epoch)
  const known = await knownOf(parts, after)
  const inTurn = createTurns()
  let seen = after
  let serveAtMs = world.monotonicMs()
  let mayWait = known.parked.size > 0

  const takeAll = (events: readonly StoredEvent[]): ParkedFact[] => {
    const rows: ParkedFact[] = []
    for (const stored of events) {
      const row = takeOne(parts, { receiver, known, after: seen }, stored)
      if (row) rows.push(row)
      seen = stored.position
    }
    return rows
  }

  return {
    after,
    processBatch: (events, position) =>
      inTurn(async () => {
        const rows = takeAll(events)
        seen = position
        mayWait ||= rows.length > 0
        const move = (sql: Sql): Promise<void> =>
          moveCheckpoint(sql, [name], receiver.open.goOnAfter() ?? position, epoch)
        if (rows.length === 0) return move(database.sql)
        await database.transaction(async sql => {
          await move(sql)
          await park(sql, rows)
        })
      }),
    serve: async () => {
      if (!mayWait || world.monotonicMs() < serveAtMs) return
      serveAtMs = world.monotonicMs() + SERVE_EVERY_MS
      await inTurn(() => settle(parts, receiver))
      for (const key of await requestedKeys(database.sql, name))
        await inTurn(() => serveKey(parts, { receiver, known }, key))
    },
  }
}

type Taking = { readonly receiver: Receiver; readonly known: Known; readonly after: Place }

/** The row that the event is parked as, when it cannot be taken. */
const takeOne = (
  parts: IntakeDependencies,
  { receiver, known, after }: Taking,
  stored: StoredEvent,
): ParkedFact | undefined => {
  const { parked, discarded } = known
  const place = placeOf(stored)
  if (discarded.has(stored.position)) return undefined
  const row = { delivery: parts.name, ...place, first_failed_at: new Date(parts.world.now()).toISOString() }
  if (stored.position >= (parked.get(place.key) ?? stored.position + 1n)) return { ...row, ...BEHIND }
  try {
    receiver.take(decode(stored).recorded, { after })
    return undefined
  } catch (error) {
    parked.set(place.key, stored.position)
    return { ...row, reason: reasonOf(error), attempts: 1 }
  }
}

const fenced = ({ name, database, epoch }: IntakeDependencies, work: (sql: Sql) => Promise<void>): Promise<void> =>
  database.transaction(async sql => {
    await moveCheckpoint(sql, [name], 'start', epoch)
    await work(sql)
  })

const settle = async (parts: IntakeDependencies, { open }: Receiver): Promise<void> => {
  const { done, failed } = open.takeSettled()
  if (done.length + failed.length === 0) return
  await fenced(parts, async sql => {
    for (const fact of done) await release(sql, fact)
    for (const { fact, reason } of failed) await keepParked(sql, fact, reason, 1)
  })
}

/** Fact by fact in their order, up to the first that is not asked for or fails again; then the key flows. */
const serveKey = async (parts: IntakeDependencies, serving: Omit<Taking, 'after'>, key: string): Promise<void> => {
  const { receiver, known } = serving
  for (const fact of await parkedOf(parts.database.sql, parts.name, key))
    if (!receiver.open.isHeld(fact) && !(await serveOne(parts, receiver, fact))) {
      known.parked.set(key, fact.position)
      return
    }
  known.parked.delete(key)
}

/** False when the fact goes on waiting. */
const serveOne = async (parts: IntakeDependencies, receiver: Receiver, fact: RequestedFact): Promise<boolean> => {
  if (fact.requested === null) return false
  try {
    if (fact.requested === 'replay')
      receiver.take(decode(await storedAgain(parts.store, fact)).recorded, { parked: fact })
  } catch (error) {
    if (isPassing(error)) throw error
    await fenced(parts, sql => keepParked(sql, fact, reasonOf(error), 1))
    return false
  }
  // An event that began a task stays in the table until the task has ended.
  if (receiver.open.isHeld(fact)) return true
  await fenced(parts, sql => (fact.requested === 'discard' ? discard(sql, fact) : release(sql, fact)))
  return true
}
