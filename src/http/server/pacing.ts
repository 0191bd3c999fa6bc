import type { Response as Outgoing } from 'express'
import { LRUCache } from 'lru-cache'
import type { RateLimit, World } from '../../ports.ts'
import type { Principal } from '../../identity/principal.ts'
import { networkOf } from './clientAddress.ts'
import { callerOf } from '../access/rateLimits.ts'
import { Problem } from '../response/problemCatalogue.ts'

/**
 * Pacing: requests above the average rate of a caller's limit are delayed to that rate, so that one caller who sends without
 * a pause leaves time for the others. Delayed requests hold no request slot. The limit itself is counted elsewhere
 * (rateLimits.ts): pacing delays requests and does not refuse them.
 */

export type Pace = {
  /** Resolves when the next request of this account may be processed. */
  readonly admit: (account: Account) => Promise<void>
  /** Whether the account exceeds its pace now; without an account, whether any does. */
  readonly isOverPace: (account?: Account) => boolean
}

export type Account = { readonly name: string; readonly waitMaxMs: number }

/** Requests that take this much time at the permitted rate pass without a delay. */
const BURST_MS = 500
/** Beyond this backlog the requests of an account are processed one after the other, with time for others between them. */
const SERIAL_ABOVE_MS = 100
const PAUSE_BETWEEN_MS = 1
const CALLER_WAIT_MAX_MS = 5_000
/** Unauthenticated callers share an account with all others of their network, and are delayed less. */
const ADDRESS_WAIT_MAX_MS = 1_000
const ACCOUNTS_MAX = 10_000
const MS_PER_SECOND = 1_000

export const callerAccount = (principal: Principal): Account => ({
  name: `caller ${callerOf(principal)}`,
  waitMaxMs: CALLER_WAIT_MAX_MS,
})

/**
 * Requests without a credential have an account for each `kind`, so that a flood of one kind does not delay the others:
 * `refused` credentials, routes that are `open` to everybody, and the endpoints of the `issuer`.
 */
export const anonymousAccount = (kind: 'refused' | 'open' | 'issuer', address: unknown): Account => ({
  name: `${kind} ${networkOf(String(address))}`,
  waitMaxMs: ADDRESS_WAIT_MAX_MS,
})

/** Refuses a request that arrived under overload, if its account exceeds its pace. Throws Problem. */
export const refuseOverPace = (pace: Pace, account: Account, { locals }: Pick<Outgoing, 'locals'>): void => {
  if (locals['underOverload'] === true && pace.isOverPace(account)) throw new Problem('overloaded')
}

type Clock = Pick<World, 'monotonicMs' | 'sleep'>

/** The generic cell rate algorithm: for each account, the time at which its last request would be due at its rate. */
export const createPace = ({ requests, windowSeconds }: RateLimit, clock: Clock): Pace => {
  const everyMs = (windowSeconds * MS_PER_SECOND) / Math.max(1, requests)
  const dueMs = new LRUCache<string, number>({ max: ACCOUNTS_MAX })

  let last = Promise.resolve()
  const takeTurn = (): Promise<void> => {
    last = last.then(() => clock.sleep(PAUSE_BETWEEN_MS))
    return last
  }

  let latestDueMs = 0
  const admit: Pace['admit'] = async ({ name, waitMaxMs }) => {
    const nowMs = clock.monotonicMs()
    const dueAtMs = Math.max(dueMs.get(name) ?? 0, nowMs)
    // A request that waits for the maximum does not delay later requests any further.
    const waitMs = Math.min(Math.max(0, dueAtMs - nowMs - BURST_MS), waitMaxMs)
    const nextMs = Math.min(dueAtMs + everyMs, nowMs + BURST_MS + waitMaxMs)
    dueMs.set(name, nextMs)
    latestDueMs = Math.max(latestDueMs, nextMs)
    if (waitMs > 0) await clock.sleep(waitMs)
    if (dueAtMs - nowMs > SERIAL_ABOVE_MS) await takeTurn()
  }

  return {
    admit,
    isOverPace: account => {
      const atMs = account === undefined ? latestDueMs : (dueMs.get(account.name) ?? 0)
      return atMs - clock.monotonicMs() > SERIAL_ABOVE_MS
    },
  }
}
