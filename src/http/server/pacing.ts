import type { Response as Outgoing } from 'express'
import { LRUCache } from 'lru-cache'
import type { RateLimit, World } from '../../ports.ts'
import type { Principal } from '../../identity/principal.ts'
import { networkOf } from './clientAddress.ts'
import { callerOf } from '../access/rateLimits.ts'
import { Problem } from '../response/problemCatalogue.ts'

/**
 * Requests that come faster than a caller's limit allows on average are taken up at the pace of the limit, so that one
 * caller who asks without a pause leaves time for the others. They wait without a place among the requests at work. The
 * limit itself is counted elsewhere (limits.ts): what waits here is not refused.
 */

export type Pace = {
  /** Resolves when the next request on this account may be taken up. */
  readonly turn: (account: Account) => Promise<void>
  /** Whether the account asks for more than its pace now; any account, when none is named. */
  readonly isBusy: (account?: Account) => boolean
}

export type Account = { readonly name: string; readonly waitMaxMs: number }

/** So much of what the limit allows may come at once. */
const BURST_MS = 500
/** From so much on the requests of an account are taken up one after the other, with time for others between them. */
const AT_ONCE_MS = 100
const TURN_MS = 1
const CALLER_WAIT_MAX_MS = 5_000
/** Callers that are not known share an account with all that come from their address, and wait less for each other. */
const ADDRESS_WAIT_MAX_MS = 1_000
const ACCOUNTS_MAX = 10_000
const MS_PER_SECOND = 1_000

export const callerAccount = (principal: Principal): Account => ({
  name: `caller ${callerOf(principal)}`,
  waitMaxMs: CALLER_WAIT_MAX_MS,
})

/** `kind` keeps apart what is asked without a credential: who floods one of them does not slow down the others. */
export const strangersAccount = (kind: 'refused' | 'open' | 'issuer', address: unknown): Account => ({
  name: `${kind} ${networkOf(String(address))}`,
  waitMaxMs: ADDRESS_WAIT_MAX_MS,
})

/** Of a request that has come under overload and was not refused at once: it is, if its caller is one of the busy ones. */
export const refuseBusy = (pace: Pace, account: Account, { locals }: Pick<Outgoing, 'locals'>): void => {
  if (locals['underOverload'] === true && pace.isBusy(account)) throw new Problem('overloaded')
}

type Clock = Pick<World, 'monotonicMs' | 'sleep'>

/** The generic cell rate algorithm: of each account the time is kept at which its last request would be due. */
export const createPace = ({ requests, windowSeconds }: RateLimit, clock: Clock): Pace => {
  const everyMs = (windowSeconds * MS_PER_SECOND) / Math.max(1, requests)
  const dueMs = new LRUCache<string, number>({ max: ACCOUNTS_MAX })

  let last = Promise.resolve()
  const takeTurn = (): Promise<void> => {
    last = last.then(() => clock.sleep(TURN_MS))
    return last
  }

  let latestDueMs = 0
  const turn: Pace['turn'] = async ({ name, waitMaxMs }) => {
    const nowMs = clock.monotonicMs()
    const dueAtMs = Math.max(dueMs.get(name) ?? 0, nowMs)
    // One that waits for as long as anybody may is taken up then, and does not make the others wait longer still.
    const waitMs = Math.min(Math.max(0, dueAtMs - nowMs - BURST_MS), waitMaxMs)
    const nextMs = Math.min(dueAtMs + everyMs, nowMs + BURST_MS + waitMaxMs)
    dueMs.set(name, nextMs)
    latestDueMs = Math.max(latestDueMs, nextMs)
    if (waitMs > 0) await clock.sleep(waitMs)
    if (dueAtMs - nowMs > AT_ONCE_MS) await takeTurn()
  }

  return {
    turn,
    isBusy: account => {
      const atMs = account === undefined ? latestDueMs : (dueMs.get(account.name) ?? 0)
      return atMs - clock.monotonicMs() > AT_ONCE_MS
    },
  }
}
