import type { TailFact } from '../../../projections/facts/queries.ts'
import type { Account } from '../../fairness/account.ts'
import { workForAll } from '../../fairness/currentAccount.ts'
import type { RunInTurn } from '../../fairness/loopTime.ts'
import type { World } from '../../ports.ts'

/** Open responses of GET /events that have caught up, each with a queue of new facts of its tenant. */

/** A stream with a longer queue falls behind, and reads from the database again. */
const QUEUE_MAX = 500
/** How late a wait may end: the streams share one timer. */
const TICK_MS = 250

/** A fact of the tail: one object for all streams of its tenant, which share its serialized forms. */
export type SharedFact = TailFact & { readonly frames: Map<string, Buffer> }

export type News = readonly SharedFact[] | 'behind'

export type LiveQueue = {
  /**
   * Waits for news, then for a turn, in which `use` gets the facts since the last call, or `behind` if the queue
   * overflowed. Resolves to the result of `use`, or to undefined if the signal aborts first.
   */
  readonly next: <T>(wait: Wait, use: Use<T>) => Promise<T | undefined>
  readonly close: () => void
}

type Use<T> = (news: News) => T | Promise<T>
type Wait = { readonly waitMs: number; readonly signal: AbortSignal }

/** One of these responses, with the queue behind its LiveQueue. While it waits, `wake` asks for its turn. */
type Follower = { queue: SharedFact[]; isBehind: boolean; dueMs: number; wake: (() => void) | undefined }

const take = (follower: Follower): News => {
  const { queue, isBehind } = follower
  follower.queue = []
  follower.isBehind = false
  return isBehind ? 'behind' : queue
}

const put = (follower: Follower, fact: SharedFact): void => {
  if (follower.queue.length >= QUEUE_MAX) follower.isBehind = true
  if (follower.isBehind) follower.queue = []
  else follower.queue.push(fact)
  follower.wake?.()
}

export type CaughtUpDependencies = {
  readonly world: World
  readonly inTurn: RunInTurn
  readonly onLastClosed: () => void
}

/** Long because its functions share the followers of one process. */
export const createCaughtUpStreams = ({ world, inTurn, onLastClosed }: CaughtUpDependencies) => {
  const byTenant = new Map<string, Set<Follower>>()
  let count = 0
  let isTicking = false

  const remove = (tenant: string, follower: Follower): void => {
    const own = byTenant.get(tenant)
    if (!own?.delete(follower)) return
    if (own.size === 0) byTenant.delete(tenant)
    count -= 1
    if (count === 0) onLastClosed()
  }

  const all = (): Follower[] => [...byTenant.values()].flatMap(own => [...own])

  const endWaits = async (): Promise<void> => {
    if (isTicking) return
    isTicking = true
    while (count > 0) {
      await world.sleep(TICK_MS)
      for (const { dueMs, wake } of all()) if (dueMs <= world.monotonicMs()) wake?.()
    }
    isTicking = false
  }

  /** Asks for the turn once, when there are facts, the time is over or the signal aborts. */
  const next = <T>(account: Account, follower: Follower, { waitMs, signal, use }: Wait & { use: Use<T> }) =>
    new Promise<T | undefined>((resolve, reject) => {
      const wake = (): void => {
        follower.wake = undefined
        signal.removeEventListener('abort', wake)
        inTurn(account, () => use(take(follower)), signal).then(resolve, reject)
      }
      follower.wake = wake
      follower.dueMs = world.monotonicMs() + waitMs
      signal.addEventListener('abort', wake)
      if (follower.queue.length > 0 || follower.isBehind || waitMs <= 0 || signal.aborted) wake()
    })

  return {
    count: () => count,
    add: (account: Account): LiveQueue => {
      const { tenant } = account
      const follower: Follower = { queue: [], isBehind: false, dueMs: 0, wake: undefined }
      byTenant.set(tenant, (byTenant.get(tenant) ?? new Set()).add(follower))
      count += 1
      void workForAll(endWaits)
      return {
        next: (wait, use) => next(account, follower, { ...wait, use }),
        close: () => remove(tenant, follower),
      }
    },
    enqueue: (facts: readonly TailFact[]): void => {
      // A late fact has two rows, and is sent at its place of arrival only.
      for (const fact of facts) {
        const own = fact.is_elsewhere ? undefined : byTenant.get(fact.tenant_id)
        if (own === undefined) continue
        const shared: SharedFact = { ...fact, frames: new Map() }
        for (const follower of own) put(follower, shared)
      }
    },
    markAllBehind: (): void => {
      for (const follower of all()) {
        follower.isBehind = true
        follower.wake?.()
      }
    },
  }
}
