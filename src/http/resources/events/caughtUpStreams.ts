import type { TailFact } from '../../../../projections/facts/queries.ts'
import type { World } from '../../../ports.ts'

/** Open responses of GET /events that have caught up, each with a queue of new facts of its tenant. */

/** A stream with a longer queue falls behind, and reads from the database again. */
const QUEUE_MAX = 500

export type LiveQueue = {
  /**
   * The new facts since the last call; `behind` if the queue overflowed: then the stream must read from the database.
   * Empty when the time is over or the signal aborts.
   */
  readonly next: (waitMs: number, signal: AbortSignal) => Promise<readonly TailFact[] | 'behind'>
  readonly close: () => void
}

/** One of these responses, with the queue behind its LiveQueue. */
type Follower = { queue: TailFact[]; isBehind: boolean; wake: AbortController }

const take = (follower: Follower): readonly TailFact[] | 'behind' => {
  const { queue, isBehind } = follower
  follower.queue = []
  follower.isBehind = false
  return isBehind ? 'behind' : queue
}

const put = (follower: Follower, fact: TailFact): void => {
  if (follower.queue.length >= QUEUE_MAX) follower.isBehind = true
  if (follower.isBehind) follower.queue = []
  else follower.queue.push(fact)
  follower.wake.abort()
}

/** Long because its functions share the followers of one process. */
export const createCaughtUpStreams = (world: World, onLastClosed: () => void) => {
  const byTenant = new Map<string, Set<Follower>>()
  let count = 0

  const remove = (tenant: string, follower: Follower): void => {
    const own = byTenant.get(tenant)
    if (!own?.delete(follower)) return
    if (own.size === 0) byTenant.delete(tenant)
    count -= 1
    if (count === 0) onLastClosed()
  }

  return {
    count: () => count,
    add: (tenant: string): LiveQueue => {
      const follower: Follower = { queue: [], isBehind: false, wake: new AbortController() }
      byTenant.set(tenant, (byTenant.get(tenant) ?? new Set()).add(follower))
      count += 1
      return {
        next: async (waitMs, signal) => {
          if (follower.queue.length === 0 && !follower.isBehind && !signal.aborted) {
            follower.wake = new AbortController()
            await world.sleep(waitMs, AbortSignal.any([signal, follower.wake.signal]))
          }
          return take(follower)
        },
        close: () => remove(tenant, follower),
      }
    },
    enqueue: (facts: readonly TailFact[]): void => {
      // A late fact has two rows, and is sent at its place of arrival only.
      for (const fact of facts)
        if (!fact.is_elsewhere) for (const follower of byTenant.get(fact.tenant_id) ?? []) put(follower, fact)
    },
    markAllBehind: (): void => {
      for (const own of byTenant.values())
        for (const follower of own) {
          follower.isBehind = true
          follower.wake.abort()
        }
    },
  }
}
