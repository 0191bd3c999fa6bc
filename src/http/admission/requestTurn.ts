import type { Response as Outgoing } from 'express'
import type { World } from '../../ports.ts'
import { type Account, isAnonymous } from '../../fairness/account.ts'
import { createAdaptiveTurns } from '../../fairness/loopDelay.ts'
import { createPendingBodies, type PendingBodies } from '../../fairness/pendingBodies.ts'
import { type EndTurn, type RefusalReason, type TurnLimits, TurnRefused, Turns } from '../../fairness/turns.ts'
import { TURN_WAIT_MS } from '../../settings/timeBudgets.ts'
import { Problem } from '../problems/problemCatalogue.ts'
import { createRefusals, type Refusals } from './refusals.ts'

/** The turn of a request: it begins when the caller is known, pauses while the body arrives, and ends with the response. */

/** The requests of a process. Their number in progress is bounded by their memory, that of turns by the processor. */
export const REQUEST_LIMITS: Omit<TurnLimits, 'turns'> = {
  places: 1_000,
  turnMaxMs: 250,
  shareAlone: 0.9,
  shareWhenContended: 1 / 12,
  onePerLoopIteration: true,
  timeShareWhenContended: 1 / 2,
  waitMaxMs: TURN_WAIT_MS,
  waitingMax: { caller: 500, tenant: 1_000, all: 2_000 },
}

/**
 * The time that a byte of a body costs event store, feeds and Postgres after the request. With half of it, the largest
 * orders, sent at the full rate, raised the p99 of others to 70 ms, and with it to 29 ms (test/soak/attacks/filling.ts).
 */
const LATER_MS_PER_BYTE = 1.5 / 4_096

export type Admission = {
  readonly turns: Pick<Turns, 'tryEnter' | 'enter' | 'isAlone'>
  readonly bodies: PendingBodies
  readonly refusals: Refusals
}

/** The working time of the event loop, and not that of the clock: a request that waits for a slow store costs others nothing. */
const loopBusyMs = (): number => performance.eventLoopUtilization().active

export const createAdmission = (
  clock: Pick<World, 'monotonicMs' | 'sleep'>,
  turns = createAdaptiveTurns(clock),
  busyMs = loopBusyMs,
): Admission => ({
  turns: new Turns({ ...REQUEST_LIMITS, turns }, clock, busyMs),
  bodies: createPendingBodies(),
  refusals: createRefusals(clock),
})

export type RequestTurn = {
  readonly account: () => Account
  /**
   * Resolves when it is the turn of the account, by default the one that the request has already; the turn that the
   * request held ends. Throws Problem.
   */
  readonly enter: (account?: Account) => Promise<void>
  /** The size of the body, which is charged from the next `enter` on. */
  readonly resize: (bodyBytes: number) => void
  /** Ends the turn and registers the pending body. */
  readonly awaitBody: (bytes: number, giveUp: () => void) => void
  /**
   * Ends the turn. Resolves when the caller may be told that it sends too much, and to come back after this time; to how long
   * that took, in ms.
   */
  readonly holdRefusal: (afterMs: number) => Promise<number>
  /** Ends the turn: the response was sent, or continues as a stream. */
  readonly end: () => void
}

/** 429 for the caller or tenant that has too many requests waiting; 503 for everybody else. */
const problemOf = (account: Account, reason: RefusalReason): Problem => {
  if (reason !== 'caller' && (reason !== 'tenant' || isAnonymous(account))) return new Problem('overloaded')
  const caller = isAnonymous(account) ? 'Your network has' : 'You have'
  const whose = reason === 'caller' ? caller : 'Your tenant has'
  const max = REQUEST_LIMITS.waitingMax[reason]
  return new Problem('rate_limited', {
    detail: `${whose} ${max} requests waiting, the maximum. Send fewer requests at once.`,
  })
}

/**
 * `onClose` registers a function to be called when the response is closed.
 *
 * Long because its functions share the turn that is held now.
 */
export const createRequestTurn = (
  { turns, bodies, refusals }: Admission,
  account: Account,
  onClose: (closed: () => void) => void,
): RequestTurn => {
  let own = account
  let laterMs = 0
  let release: EndTurn = () => undefined
  let closed: AbortController | undefined
  let isOver = false
  const end = (): void => {
    isOver = true
    release()
    closed?.abort()
  }
  onClose(end)

  const wait = async (): Promise<EndTurn> => {
    closed = new AbortController()
    try {
      return await turns.enter({ ...own, laterMs }, closed.signal)
    } catch (error) {
      throw error instanceof TurnRefused ? problemOf(own, error.reason) : error
    } finally {
      closed = undefined
    }
  }
  const enter = async (next = own): Promise<void> => {
    release()
    own = next
    if (isOver) return
    release = turns.tryEnter({ ...own, laterMs }) ?? (await wait())
    if (isOver) release()
  }
  return {
    account: () => ({ ...own, isAlone: () => turns.isAlone(own.tenant) }),
    enter,
    resize: bodyBytes => {
      laterMs = bodyBytes * LATER_MS_PER_BYTE
    },
    awaitBody: (bytes, giveUp) => {
      release()
      if (!isOver) release = bodies.add(own, { bytes, giveUp })
    },
    holdRefusal: async afterMs => {
      if (isOver) return 0
      end()
      closed = new AbortController()
      return refusals.hold(own, afterMs, closed.signal)
    },
    end,
  }
}

export const turnOf = ({ locals }: Pick<Outgoing, 'locals'>): RequestTurn => locals['turn'] as RequestTurn
