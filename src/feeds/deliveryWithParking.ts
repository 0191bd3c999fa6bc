import { type Database, type FactMessage, type FactProducer, FactTooLarge, type Sql, type World } from '../ports.ts'
import { type EventReference, type DeadLetter, type Failure, reasonOf } from './deadLetters.ts'
import { openParking, type Parking, serveRegularly, isTransient } from './parking.ts'
import { createSerialQueue } from '../lib/serialQueue.ts'
import { createTimer } from './timer.ts'

/**
 * Sends facts for the publisher and each subscription. A fact that fails ATTEMPTS_MAX times, because it is too large or
 * cannot be made, is parked with the later ones of its key (parking.ts).
 */

/** A fact to send. `message` throws for an event that no fact can be made of. */
export type Outgoing = EventReference & { readonly message: () => FactMessage }

export type DeliveryDependencies = {
  readonly database: Database
  readonly bus: FactProducer
  readonly world: World
  /** The fact of a dead letter, as this build makes it; undefined if nothing is to be sent. Throws if the event is gone. */
  readonly find: (parked: DeadLetter) => Promise<Outgoing | undefined>
  /** Throws EpochSuperseded in an old epoch, which undoes the transaction that it is part of. */
  readonly fence: (sql: Sql) => Promise<void>
}

export type DeliveryWithParking = {
  /**
   * Sends or parks all facts. `commit` moves the checkpoint with the parked rows; `commitAlone` where there are none.
   */
  readonly send: (
    facts: readonly Outgoing[],
    commit: (sql: Sql) => Promise<void>,
    commitAlone?: () => Promise<void>,
  ) => Promise<void>
  /** Serves the requests of operators, until the signal. */
  readonly serve: (signal: AbortSignal) => Promise<void>
}

/** Opened once per run, after the run has acquired its checkpoint (see openParking). */
export const openDeliveryWithParking = async (
  name: string,
  dependencies: DeliveryDependencies,
): Promise<DeliveryWithParking> => {
  const { database, world, find, fence } = dependencies
  const attempt = publishWithRetries(dependencies)
  const queue = createSerialQueue()
  const timer = createTimer(world)
  const parking = await openParking({
    name,
    database,
    world,
    queue,
    fence,
    timer,
    replay: async parked => {
      const fact = await find(parked)
      const failure = fact && (await attempt(fact))
      return failure ? { ok: false, ...failure } : { ok: true }
    },
  })
  return {
    send: (facts, commit, commitAlone) =>
      queue(async () => {
        const rows = await sendAll(dependencies, attempt, parking, facts)
        if (rows.length === 0 && commitAlone !== undefined) await commitAlone()
        else await parking.parkAndMove(rows, commit)
      }),
    serve: signal => serveRegularly(() => [parking], timer, signal),
  }
}

/** `oneByOne`, by key: the first fact that cannot be sent with the others, and every later one of its key. */
type Prepared = { together: FactMessage[]; readonly oneByOne: Map<string, Outgoing[]> }

const prepare = (facts: readonly Outgoing[]): Prepared => {
  const prepared: Prepared = { together: [], oneByOne: new Map() }
  for (const fact of facts) {
    const others = prepared.oneByOne.get(fact.key)
    if (others) others.push(fact)
    else
      try {
        prepared.together.push(fact.message())
      } catch {
        prepared.oneByOne.set(fact.key, [fact])
      }
  }
  return prepared
}

/** Sends the messages in one request. All facts of a key with one that is too large move to `oneByOne`. */
const sendTogether = async (bus: FactProducer, prepared: Prepared, facts: readonly Outgoing[]): Promise<void> => {
  while (prepared.together.length > 0) {
    try {
      return await bus.publish(prepared.together)
    } catch (error) {
      if (!(error instanceof FactTooLarge)) throw error
      // Some facts of the key may have arrived. They are sent again: delivery is at least once.
      prepared.together = prepared.together.filter(({ key }) => key !== error.key)
      prepared.oneByOne.set(
        error.key,
        facts.filter(({ key }) => key === error.key),
      )
    }
  }
}

const referencesOf = (facts: readonly Outgoing[]): EventReference[] => facts.map(({ message: _, ...fact }) => fact)

/** Sends the facts; returns the rows for those that have to be parked. */
const sendAll = async (
  { bus }: DeliveryDependencies,
  attempt: ReturnType<typeof publishWithRetries>,
  parking: Parking,
  facts: readonly Outgoing[],
): Promise<DeadLetter[]> => {
  const waiting = parking.isEmpty() ? [] : facts.filter(({ key }) => parking.isParked(key))
  const flowing = waiting.length === 0 ? facts : facts.filter(({ key }) => !parking.isParked(key))
  const prepared = prepare(flowing)
  await sendTogether(bus, prepared, flowing)
  const rows = parking.rowsOf(referencesOf(waiting))
  for (const ofKey of prepared.oneByOne.values())
    for (const [index, fact] of ofKey.entries()) {
      const failure = await attempt(fact)
      if (failure === undefined) continue
      rows.push(...parking.rowsOf(referencesOf(ofKey.slice(index)), failure))
      break
    }
  return rows
}

/** Of a fact that is too large or cannot be made. A transient error is thrown at once, after the retries of the bus. */
const ATTEMPTS_MAX = 10
const ATTEMPT_PAUSE_MS = 50

type RetryDependencies = { readonly bus: FactProducer; readonly world: Pick<World, 'sleep'> }

/** Sends the fact; returns the failure of the last attempt. */
const publishWithRetries =
  ({ bus, world }: RetryDependencies) =>
  async (fact: Outgoing): Promise<Failure | undefined> => {
    for (let attempts = 1; ; attempts++) {
      try {
        await bus.publish([fact.message()])
        return undefined
      } catch (error) {
        if (isTransient(error)) throw error
        if (attempts === ATTEMPTS_MAX) return { reason: reasonOf(error), attempts }
        await world.sleep(ATTEMPT_PAUSE_MS)
      }
    }
  }
