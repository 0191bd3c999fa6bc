import { type Database, type FactBus, type FactMessage, FactTooLarge, type Sql, type World } from '../ports.ts'
import { type EventReference, type Failure, type ParkedEvent, reasonOf } from './parkedEvents.ts'
import { isTransient, openParking, type Parking, serveRegularly } from './parking.ts'
import { createSerialQueue } from './serialQueue.ts'

/**
 * Sends facts to topics, for the publisher and for each subscription. A fact that has failed ATTEMPTS_MAX times, or that
 * cannot be made from its event, is parked with the later facts of its key (parking.ts).
 */

const ATTEMPTS_MAX = 10
const ATTEMPT_PAUSE_MS = 50

/** A fact to send. `message` throws for an event that no fact can be made of. */
export type Outgoing = EventReference & { readonly message: () => FactMessage }

export type DeliveryDependencies = {
  readonly database: Database
  readonly bus: FactBus
  readonly world: World
  /** The fact of a parked event, as it would be sent today; undefined when it is none. Throws when it is gone. */
  readonly find: (parked: ParkedEvent) => Promise<Outgoing | undefined>
  /** Throws Replaced in an old epoch, which undoes the transaction that it is part of. */
  readonly fence: (sql: Sql) => Promise<void>
}

export type DeliveryWithParking = {
  /** Sends or parks all facts. `commit` moves the checkpoint, after the broker's acknowledgement and with the parked rows. */
  readonly send: (facts: readonly Outgoing[], commit: (sql: Sql) => Promise<void>) => Promise<void>
  /** Serves the requests of operators, until the signal. */
  readonly serve: (signal: AbortSignal) => Promise<void>
}

/** `failed`: by key, the facts from the first that cannot be sent on. */
type Sorted = { sendable: FactMessage[]; readonly failed: Map<string, Outgoing[]> }

const sort = (facts: readonly Outgoing[]): Sorted => {
  const sorted: Sorted = { sendable: [], failed: new Map() }
  for (const fact of facts) {
    const behind = sorted.failed.get(fact.key)
    if (behind) behind.push(fact)
    else
      try {
        sorted.sendable.push(fact.message())
      } catch {
        sorted.failed.set(fact.key, [fact])
      }
  }
  return sorted
}

const attemptWith =
  ({ bus, world }: DeliveryDependencies) =>
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

/** Sends in one request all that is sendable. The keys of facts that are too large move to `failed`. */
const sendSorted = async (bus: FactBus, sorted: Sorted, facts: readonly Outgoing[]): Promise<void> => {
  while (sorted.sendable.length > 0) {
    try {
      return await bus.publish(sorted.sendable)
    } catch (error) {
      if (!(error instanceof FactTooLarge)) throw error
      // Some facts of the key may have arrived. They are sent again: delivery is at least once.
      sorted.sendable = sorted.sendable.filter(({ key }) => key !== error.key)
      sorted.failed.set(
        error.key,
        facts.filter(({ key }) => key === error.key),
      )
    }
  }
}

const referencesOf = (facts: readonly Outgoing[]): EventReference[] => facts.map(({ message: _, ...fact }) => fact)

/** Sends the facts, and returns the rows of those to park. */
const sendAll = async (
  { bus }: DeliveryDependencies,
  attempt: ReturnType<typeof attemptWith>,
  parking: Parking,
  facts: readonly Outgoing[],
): Promise<ParkedEvent[]> => {
  const { flowing = [], waiting = [] } = Object.groupBy(facts, ({ key }) =>
    parking.isParked(key) ? 'waiting' : 'flowing',
  )
  const sorted = sort(flowing)
  await sendSorted(bus, sorted, flowing)
  const rows = parking.rowsOf(referencesOf(waiting))
  for (const ofKey of sorted.failed.values())
    for (const [index, fact] of ofKey.entries()) {
      const failure = await attempt(fact)
      if (failure === undefined) continue
      rows.push(...parking.rowsOf(referencesOf(ofKey.slice(index)), failure))
      break
    }
  return rows
}

/** For one run, whose checkpoint must have been acquired before (parking.ts). */
export const openDeliveryWithParking = async (
  name: string,
  dependencies: DeliveryDependencies,
): Promise<DeliveryWithParking> => {
  const { database, world, find, fence } = dependencies
  const attempt = attemptWith(dependencies)
  const inOrder = createSerialQueue()
  const parking = await openParking({
    name,
    database,
    world,
    queue: inOrder,
    fence,
    replay: async parked => {
      const fact = await find(parked)
      const failure = fact && (await attempt(fact))
      return failure ? { ok: false, ...failure } : { ok: true }
    },
  })
  return {
    send: (facts, commit) =>
      inOrder(async () => {
        const rows = await sendAll(dependencies, attempt, parking, facts)
        await parking.parkAndMove(rows, commit)
      }),
    serve: signal => serveRegularly(() => [parking], world, signal),
  }
}
