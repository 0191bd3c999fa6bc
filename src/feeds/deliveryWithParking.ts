import {
  type Database,
  type FactBus,
  type FactMessage,
  FactTooLarge,
  type Sql,
  Unavailable,
  type World,
} from '../ports.ts'
import {
  BEHIND,
  keepParked,
  park,
  type ParkedFact,
  parkedKeys,
  parkedOf,
  reasonOf,
  release,
  type RequestedFact,
  requestedKeys,
} from './deadLetters.ts'

/**
 * Facts on their way to topics. A fact that cannot be delivered must not hold up the others, and none of its key may
 * overtake it; so a key is in one of two states:
 *
 *   flowing ── a fact of it fails ATTEMPTS_MAX times ──▶ parked: it and every later one of the key wait in Postgres
 *   parked  ── an operator has what waits replayed or discarded, to the last ──▶ flowing
 *
 * A broker that does not answer parks nothing: that is not the fact's fault, and passes.
 */

const ATTEMPTS_MAX = 10
const ATTEMPT_PAUSE_MS = 50
const REQUESTS_POLL_MS = 500

/** `message` throws for a fact that cannot be made. */
export type Outgoing = Omit<ParkedFact, 'delivery' | 'reason' | 'attempts' | 'first_failed_at'> & {
  readonly message: () => FactMessage
}

type Failure = { readonly reason: string; readonly attempts: number }
type Sorted = { sound: FactMessage[]; readonly troubled: Map<string, Outgoing[]> }

export type DeliveryDependencies = {
  readonly database: Database
  readonly bus: FactBus
  readonly world: World
  /** Finds a parked fact again, as it would be sent today; undefined when it turns out to be none. Throws when it is gone. */
  readonly find: (parked: ParkedFact) => Promise<Outgoing | undefined>
  /** Throws in a process that was replaced, and so undoes what was written with it. */
  readonly fence: (sql: Sql) => Promise<void>
}

export type Delivery = {
  /** Sends what can be sent. Resolves when the broker has it, and with it, in `commit`, whatever is parked. */
  readonly send: (facts: readonly Outgoing[], commit: (sql: Sql) => Promise<void>) => Promise<void>
  /** Does what operators ask for, until the signal. */
  readonly serve: (signal: AbortSignal) => Promise<void>
}

/** What is no property of the fact: it will pass, or it is for the operator of the broker. */
const isFactsFault = (error: unknown): boolean =>
  !(error instanceof Unavailable) && !(error instanceof Error && error.name === 'FactBusRefused')

/** From the first that cannot be made, all of its key are in trouble. */
const sort = (facts: readonly Outgoing[]): Sorted => {
  const sorted: Sorted = { sound: [], troubled: new Map() }
  for (const fact of facts) {
    const waiting = sorted.troubled.get(fact.key)
    if (waiting) waiting.push(fact)
    else
      try {
        sorted.sound.push(fact.message())
      } catch {
        sorted.troubled.set(fact.key, [fact])
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
        if (!isFactsFault(error)) throw error
        if (attempts === ATTEMPTS_MAX) return { reason: reasonOf(error), attempts }
        await world.sleep(ATTEMPT_PAUSE_MS)
      }
    }
  }

/** Sends the sound ones together. Those of a key with one that is too large become troubled. */
const sendSound = async (bus: FactBus, sorted: Sorted, facts: readonly Outgoing[]): Promise<void> => {
  while (sorted.sound.length > 0) {
    try {
      return await bus.publish(sorted.sound)
    } catch (error) {
      if (!(error instanceof FactTooLarge)) throw error
      // Some of its key may have arrived: they come again, which is what "at least once" is for.
      sorted.sound = sorted.sound.filter(({ key }) => key !== error.key)
      sorted.troubled.set(
        error.key,
        facts.filter(({ key }) => key === error.key),
      )
    }
  }
}

type RowsOf = (waiting: readonly Outgoing[], failure?: Failure) => ParkedFact[]

/** The rows of a fact that failed and of those that wait behind it. */
const rowsFor =
  (delivery: string, world: World): RowsOf =>
  (waiting, failure) =>
    waiting.map(({ message: _, ...fact }, index) => ({
      ...fact,
      delivery,
      ...(index === 0 && failure ? failure : BEHIND),
      first_failed_at: new Date(world.now()).toISOString(),
    }))

/** Does what an operator asked for on one key, fact by fact in their order; false when one of them failed again. */
const serveKey = async (name: string, key: string, parts: DeliveryDependencies): Promise<boolean> => {
  const { database, find, fence } = parts
  const attempt = attemptWith(parts)
  const again = async (fact: ParkedFact): Promise<Failure | undefined> => {
    try {
      const found = await find(fact)
      return found && (await attempt(found))
    } catch (error) {
      if (!isFactsFault(error)) throw error
      return { reason: reasonOf(error), attempts: 1 }
    }
  }
  const serveOne = async (fact: RequestedFact): Promise<boolean> => {
    const failure = fact.requested === 'discard' ? undefined : await again(fact)
    await database.transaction(async sql => {
      await fence(sql)
      if (failure) await keepParked(sql, fact, failure.reason, failure.attempts)
      else await release(sql, fact)
    })
    return failure === undefined
  }
  for (const fact of await parkedOf(database.sql, name, key))
    if (fact.requested === null || !(await serveOne(fact))) return false
  return true
}

/** For one run. The checkpoint has been taken over before: what an older holder parks after this look is undone. */
export const openDelivery = async (name: string, parts: DeliveryDependencies): Promise<Delivery> => {
  const { database, bus, world } = parts
  const attempt = attemptWith(parts)
  const rowsOf = rowsFor(name, world)
  const parked = await parkedKeys(database.sql, name)
  let last: Promise<unknown> = Promise.resolve()
  /** What the loop sends and what an operator has replayed must not cross. */
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const mine = last.then(work, work)
    last = mine.catch(() => undefined)
    return mine
  }

  const sendOneByOne = async (facts: readonly Outgoing[]): Promise<ParkedFact[]> => {
    for (const [index, fact] of facts.entries()) {
      const failure = await attempt(fact)
      if (failure) return rowsOf(facts.slice(index), failure)
    }
    return []
  }

  const sendAll = async (facts: readonly Outgoing[]): Promise<ParkedFact[]> => {
    const flowing = parked.size === 0 ? facts : facts.filter(({ key }) => !parked.has(key))
    const sorted = sort(flowing)
    await sendSound(bus, sorted, flowing)
    const rows = rowsOf(parked.size === 0 ? [] : facts.filter(({ key }) => parked.has(key)))
    for (const troubled of sorted.troubled.values()) rows.push(...(await sendOneByOne(troubled)))
    return rows
  }

  return {
    send: (facts, commit) =>
      inTurn(async () => {
        const rows = await sendAll(facts)
        if (rows.length === 0) return commit(database.sql)
        await database.transaction(async sql => {
          await commit(sql)
          await park(sql, rows)
        })
        for (const { key } of rows) parked.add(key)
      }),
    serve: async signal => {
      while (!signal.aborted) {
        await world.sleep(REQUESTS_POLL_MS, signal)
        if (signal.aborted || parked.size === 0) continue
        for (const key of await requestedKeys(database.sql, name))
          await inTurn(async () => {
            if (await serveKey(name, key, parts)) parked.delete(key)
          })
      }
    },
  }
}
