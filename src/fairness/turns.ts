import type { World } from '../ports.ts'
import { type Account, isAnonymous } from './account.ts'
import { FairQueue } from './fairQueue.ts'
import { TimeShares } from './timeShares.ts'

/**
 * Turns decide who goes next when something is scarce: a process's time or a pool's connections. Work begins at once
 * while fewer than `turns` are in progress, so nobody waits while the machine is idle; rate limits, not turns, decide how
 * much an account may do over time. Once all turns are taken, work waits in a fair queue: tenants alternate, then the
 * callers of each.
 *
 * Queueing alone would not help a newcomer who finds every turn held by one tenant, hence the shares: a tenant may hold
 * nearly all turns while it is alone, and a smaller part if another tenant has been active within the last second.
 *
 * Shares alone are not enough when turns are short: within one iteration of the event loop, finished work keeps making
 * room for new work until the whole queue has drained, and a request needs many iterations. So while more than one
 * tenant is active, only one piece of work starts per iteration. With two tenants attacking, a quiet tenant's requests took
 * 50 times as long as when it was alone without this rule, and twice as long with it (test/faults/attackers.test.ts).
 *
 * Nor do turns help where each is expensive, so while others are active a tenant is also limited to a share of the time
 * (src/fairness/timeShares.ts). Without that, one tenant sending the largest accepted orders at its full rate made a quiet
 * tenant's requests take ten times as long (test/soak/attacks/filling.ts).
 *
 * A turn lasts `turnMaxMs` at most. Work that takes longer is usually waiting, for a position in the log, a request body
 * or a dependency that hangs. It keeps its place, and places are plentiful, but its turn passes to the next in line.
 */

export type TurnLimits = {
  /** How many may be in progress at once; called before each turn. */
  readonly turns: () => number
  /** How many may be in progress, including those that have outlived their turn; a tenant may hold half of them. */
  readonly places: number
  readonly turnMaxMs: number
  /** The fraction of the turns that one tenant may hold. */
  readonly shareAlone: number
  readonly shareWhenContended: number
  /** Whether only one piece of work starts per iteration of the event loop while several tenants are active. */
  readonly onePerLoopIteration: boolean
  /** The fraction of the time that one tenant's work may take while others are active; 1 for no limit. */
  readonly timeShareWhenContended: number
  readonly waitMaxMs: number
  readonly waitingMax: { readonly caller: number; readonly tenant: number; readonly all: number }
}

/** For work that holds a scarce thing until it ends, such as the connection of a statement. */
export const HELD_UNTIL_DONE: Omit<TurnLimits, 'turns'> = {
  places: Infinity,
  turnMaxMs: Infinity,
  shareAlone: 0.8,
  shareWhenContended: 0.25,
  onePerLoopIteration: false,
  timeShareWhenContended: 1,
  waitMaxMs: Infinity,
  waitingMax: { caller: Infinity, tenant: Infinity, all: Infinity },
}

/** `caller` and `tenant`: the one that has too many waiting. `gone`: the signal aborted. */
export type RefusalReason = 'caller' | 'tenant' | 'too_many' | 'too_late' | 'gone'

export class TurnRefused extends Error {
  readonly reason: RefusalReason
  constructor(reason: RefusalReason) {
    super(`There was no turn: ${reason}.`)
    this.name = 'TurnRefused'
    this.reason = reason
  }
}

/** Ends the work; further calls do nothing. */
export type EndTurn = () => void

type Holding = { turns: number; places: number }
type Turn = { readonly account: Account; readonly sinceMs: number; readonly charge: (isAlone: boolean) => void }
type Waiting = Omit<Turn, 'charge'> & {
  readonly begin: (end: EndTurn) => void
  readonly refuse: (reason: RefusalReason) => void
}
type Seen = { readonly tenant: string | undefined; readonly atMs: number }
type Clock = Pick<World, 'monotonicMs' | 'sleep'>

/** A tenant that was not seen for this time takes no share from the others. */
const RECENT_MS = 1_000
const COST_MIN_MS = 1
/** How often waits and turns are checked for having lasted too long. */
const TICK_MS = 5

export class Turns {
  readonly #limits: TurnLimits
  readonly #clock: Clock
  readonly #queue = new FairQueue<Waiting>()
  /** The turns that are held, the oldest first. */
  readonly #atWork = new Set<Turn>()
  readonly #held = new Map<string, Holding>()
  #places = 0
  #isTicking = false
  #hasBegunInIteration = false
  readonly #times: TimeShares
  /** The tenant that was seen last, and the one before it. */
  #latest: Seen = { tenant: undefined, atMs: -Infinity }
  #before: Seen = { tenant: undefined, atMs: -Infinity }
  /** When an account last said that it is not alone. */
  #othersSeenMs = -Infinity

  /** `busyMs`: how long the shared resource has been busy so far; by default it is always busy. */
  constructor(limits: TurnLimits, clock: Clock, busyMs = clock.monotonicMs) {
    this.#limits = limits
    this.#clock = clock
    this.#times = new TimeShares(limits.timeShareWhenContended, clock.monotonicMs, busyMs)
  }

  /** The number of those that wait. */
  get waiting(): number {
    return this.#queue.size
  }

  /** Begins work that needs not wait; undefined when it must. */
  tryEnter(account: Account): EndTurn | undefined {
    this.#see(account)
    this.#endLongTurns()
    if (this.#queue.waitingOf(account).tenant > 0 || !this.#hasTurn() || !this.#mayBegin(account.tenant))
      return undefined
    this.#queue.begin(account)
    return this.#begin(account)
  }

  /** Resolves when the work may begin. Throws TurnRefused. A waiter whose signal aborts leaves the queue. */
  async enter(account: Account, signal?: AbortSignal): Promise<EndTurn> {
    return this.tryEnter(account) ?? (await this.#wait(account, signal))
  }

  #wait(account: Account, signal: AbortSignal | undefined): Promise<EndTurn> {
    this.#makeRoom(account)
    return new Promise((resolve, reject) => {
      const leave = (): void => this.#refuse(waiting, 'gone')
      const waiting: Waiting = {
        account,
        sinceMs: this.#clock.monotonicMs(),
        begin: end => {
          signal?.removeEventListener('abort', leave)
          resolve(end)
        },
        refuse: reason => {
          signal?.removeEventListener('abort', leave)
          reject(new TurnRefused(reason))
        },
      }
      this.#queue.add(waiting)
      if (signal?.aborted) return leave()
      signal?.addEventListener('abort', leave)
      void this.#watchTimes()
    })
  }

  /** Refuses the newest of the longest queue, unless the account's own would then be the longest. */
  #makeRoom(account: Account): void {
    const { caller, tenant, all } = this.#limits.waitingMax
    const own = this.#queue.waitingOf(account)
    if (own.caller >= caller) throw new TurnRefused('caller')
    if (own.tenant >= tenant) this.#refuseLast('tenant', own.caller, account.tenant)
    else if (this.#queue.size >= all) this.#refuseLast('too_many', own.tenant)
  }

  #refuseLast(reason: 'tenant' | 'too_many', own: number, tenant?: string): void {
    const last = this.#queue.newestOfLongest(tenant)
    const longest = last && this.#queue.waitingOf(last.account)[tenant === undefined ? 'tenant' : 'caller']
    if (last === undefined || longest === undefined || longest <= own + 1) throw new TurnRefused(reason)
    this.#refuse(last, reason)
  }

  #refuse(waiting: Waiting, reason: RefusalReason): void {
    if (this.#queue.remove(waiting)) waiting.refuse(reason)
  }

  #hasTurn(): boolean {
    return this.#atWork.size < this.#limits.turns() && this.#places < this.#limits.places
  }

  #mayBegin(tenant: string): boolean {
    const { turns = 0, places = 0 } = this.#held.get(tenant) ?? {}
    const isAlone = this.isAlone(tenant)
    if (!isAlone && (this.#hasBegunInIteration || !this.#times.mayBegin(tenant, turns))) return false
    const share = isAlone ? this.#limits.shareAlone : this.#limits.shareWhenContended
    return turns < Math.max(1, Math.floor(this.#limits.turns() * share)) && places < this.#limits.places / 2
  }

  /** Whether no other tenant was seen within the last second. */
  isAlone(tenant: string): boolean {
    const other = this.#latest.tenant === tenant ? this.#before : this.#latest
    return this.#clock.monotonicMs() - Math.max(other.atMs, this.#othersSeenMs) > RECENT_MS
  }

  #see(account: Account): void {
    if (isAnonymous(account)) return
    if (account.isAlone?.() === false) this.#othersSeenMs = this.#clock.monotonicMs()
    if (this.#latest.tenant !== account.tenant) this.#before = this.#latest
    this.#latest = { tenant: account.tenant, atMs: this.#clock.monotonicMs() }
  }

  #begin(account: Account): EndTurn {
    this.#countInIteration()
    const turn = { account, sinceMs: this.#clock.monotonicMs(), charge: this.#times.begin(account) }
    const held = this.#held.get(account.tenant) ?? { turns: 0, places: 0 }
    this.#held.set(account.tenant, held)
    this.#atWork.add(turn)
    this.#places++
    held.turns++
    held.places++
    let hasEnded = false
    return () => {
      if (hasEnded) return
      hasEnded = true
      this.#end(turn, held)
      this.#beginNext()
    }
  }

  #countInIteration(): void {
    if (!this.#limits.onePerLoopIteration || this.#hasBegunInIteration) return
    this.#hasBegunInIteration = true
    setImmediate(() => {
      this.#hasBegunInIteration = false
      this.#beginNext()
    })
  }

  #end(turn: Turn, held: Holding): void {
    const { account, sinceMs } = turn
    this.#leave(turn)
    held.places--
    this.#places--
    if (held.places === 0) this.#held.delete(account.tenant)
    const tookMs = this.#clock.monotonicMs() - sinceMs
    this.#queue.end(account, Math.max(COST_MIN_MS, tookMs) * (account.costFactor ?? 1))
  }

  #endLongTurns(): void {
    const beforeMs = this.#clock.monotonicMs() - this.#limits.turnMaxMs
    for (const turn of this.#atWork) {
      if (turn.sinceMs > beforeMs) return
      this.#leave(turn)
    }
  }

  #leave(turn: Turn): void {
    if (!this.#atWork.delete(turn)) return
    turn.charge(this.isAlone(turn.account.tenant))
    const held = this.#held.get(turn.account.tenant)
    if (held !== undefined) held.turns--
  }

  #beginNext(): void {
    while (this.#queue.size > 0 && this.#hasTurn()) {
      const next = this.#queue.take(tenant => this.#mayBegin(tenant))
      if (next === undefined) return
      next.begin(this.#begin(next.account))
    }
  }

  async #watchTimes(): Promise<void> {
    if (this.#isTicking) return
    this.#isTicking = true
    while (this.#queue.size > 0) {
      await this.#clock.sleep(TICK_MS)
      this.#endLongTurns()
      const sinceMs = this.#clock.monotonicMs() - this.#limits.waitMaxMs
      for (const waiting of this.#queue.items()) if (waiting.sinceMs <= sinceMs) this.#refuse(waiting, 'too_late')
      this.#beginNext()
    }
    this.#isTicking = false
  }
}
