import type { Response as Outgoing } from 'express'
import type { RateLimit, World } from '../../ports.ts'
import type { Principal } from '../../identity/principal.ts'
import { type Backlogs, createBacklogs } from './backlogs.ts'
import { networkOf } from './clientAddress.ts'
import { callerOf } from '../access/rateLimits.ts'
import { Problem } from '../response/problemCatalogue.ts'

/**
 * Pacing: requests above the average rate of a caller's limit are delayed to that rate, so that one caller who sends
 * without a pause leaves time for the others. Delayed requests hold no request slot. Pacing refuses requests only under
 * overload; the limit itself is counted elsewhere (rateLimits.ts).
 */

export type Pace = {
  /** Resolves when the next request of this account may be processed. */
  readonly admit: (account: Account) => Promise<void>
  /** Whether the account exceeds its pace now; without an account, whether any does. */
  readonly isOverPace: (account?: Account) => boolean
}

export type Account = { readonly name: string; readonly waitMaxMs: number }

/** A burst passes without delay while the permitted rate would need at most this time for it. */
const BURST_MS = 500
/** Beyond this backlog requests are released one after the other, with a pause for those of other accounts. */
const SERIAL_ABOVE_MS = 100
const PAUSE_BETWEEN_MS = 1
const CALLER_WAIT_MAX_MS = 5_000
/** Unauthenticated callers share an account with all others of their network, and are delayed less. */
const ADDRESS_WAIT_MAX_MS = 1_000
const MS_PER_SECOND = 1_000

export const callerAccount = (principal: Principal): Account => ({
  name: `caller ${callerOf(principal)}`,
  waitMaxMs: CALLER_WAIT_MAX_MS,
})

/**
 * A network has an account for each kind of request without a valid credential, so that a flood of one kind does not
 * delay the others: `refused` credentials, `public` routes and unknown paths, and the endpoints of the `issuer`.
 */
export const anonymousAccount = (kind: 'refused' | 'public' | 'issuer', address: unknown): Account => ({
  name: `${kind} ${networkOf(String(address))}`,
  waitMaxMs: ADDRESS_WAIT_MAX_MS,
})

/** Refuses a request that arrived under overload, if its account exceeds its pace. Throws Problem. */
export const refuseOverPace = (pace: Pace, account: Account, { locals }: Pick<Outgoing, 'locals'>): void => {
  if (locals['underOverload'] === true && pace.isOverPace(account)) throw new Problem('overloaded')
}

type Clock = Pick<World, 'monotonicMs' | 'sleep'>

/** `backlogs` are those of this process alone when absent. */
export const createPace = (
  { requests, windowSeconds }: RateLimit,
  clock: Clock,
  backlogs: Backlogs = createBacklogs(clock),
): Pace => {
  const everyMs = (windowSeconds * MS_PER_SECOND) / Math.max(1, requests)

  let last = Promise.resolve()
  const takeTurn = (): Promise<void> => {
    last = last.then(() => clock.sleep(PAUSE_BETWEEN_MS))
    return last
  }

  const admit: Pace['admit'] = async ({ name, waitMaxMs }) => {
    // A request that waits for the maximum does not delay later requests any further.
    const backlogMs = backlogs.add(name, everyMs, BURST_MS + waitMaxMs)
    const waitMs = Math.min(Math.max(0, backlogMs - BURST_MS), waitMaxMs)
    if (waitMs > 0) await clock.sleep(waitMs)
    if (backlogMs > SERIAL_ABOVE_MS) await takeTurn()
  }

  return {
    admit,
    isOverPace: account => (account === undefined ? backlogs.largest() : backlogs.of(account.name)) > SERIAL_ABOVE_MS,
  }
}
