import { LRUCache } from 'lru-cache'
import type { World } from '../../ports.ts'

/** The backlogs of accounts, in memory: the state of pacing (pacing.ts). */

const ACCOUNTS_MAX = 10_000

/** For each account, the time in ms by which its requests are ahead of their permitted rate. */
export type Backlogs = {
  /**
   * Adds a request, which takes `everyMs` at the permitted rate; returns the backlog before it. It grows to `maxMs` at
   * most.
   */
  readonly add: (account: string, everyMs: number, maxMs: number) => number
  readonly of: (account: string) => number
  /** The largest one of all accounts. */
  readonly largest: () => number
}

export type MutableBacklogs = Backlogs & { readonly set: (account: string, backlogMs: number) => void }

/**
 * The generic cell rate algorithm: for each account, the time at which its next request is due at the permitted rate.
 */
export const createBacklogs = ({ monotonicMs }: Pick<World, 'monotonicMs'>): MutableBacklogs => {
  const dueMs = new LRUCache<string, number>({ max: ACCOUNTS_MAX })
  let latestDueMs = 0
  const set = (account: string, backlogMs: number): void => {
    const atMs = monotonicMs() + backlogMs
    dueMs.set(account, atMs)
    latestDueMs = Math.max(latestDueMs, atMs)
  }
  return {
    add: (account, everyMs, maxMs) => {
      const beforeMs = Math.max(0, (dueMs.get(account) ?? 0) - monotonicMs())
      set(account, Math.min(beforeMs + everyMs, maxMs))
      return beforeMs
    },
    set,
    of: account => (dueMs.get(account) ?? 0) - monotonicMs(),
    largest: () => latestDueMs - monotonicMs(),
  }
}
