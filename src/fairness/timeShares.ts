import type { Account } from './account.ts'

/**
 * The time that each tenant's work takes. While n pieces of work are in progress, each is charged an n-th of the time
 * (processor sharing), so all charges together are the time in which the process worked. Beside others, a tenant waits
 * after its work until it has used no more than its share of the time that passed, whatever made the work expensive:
 * the length of a history, a slow statement, or the size of a body, whose cost in stores and feeds comes later.
 */

/**
 * What a tenant may use in advance. A request that coincides with a collection of garbage or a full event loop is charged
 * more than it used: with 20 ms, a quiet tenant beside event streams waited up to 60 ms for turns of its own.
 */
const BURST_MS = 150
/** Work that takes longer than this mostly waits for something. */
const CHARGE_MAX_MS = 50
/** The expected time of all the work that a tenant has in progress. Without this limit the burst would be a hundred expensive requests. */
const IN_PROGRESS_MAX_MS = 8
/** The weight of the newest work in a tenant's mean. */
const MEAN_WEIGHT = 0.1
const MEAN_MS_INITIAL = 1
/** Above this number of tenants, those that owe nothing are removed. */
const TENANTS_MAX = 1_000

type Usage = { meanMs: number; paidUntilMs: number }

export class TimeShares {
  readonly #share: number
  readonly #monotonicMs: () => number
  readonly #busyMs: () => number
  readonly #usages = new Map<string, Usage>()
  /** The time that one piece of work, in progress since the beginning, would have been charged. */
  #chargedMs = 0
  #chargedAtMs = 0
  #inProgress = 0

  /** `share`: of a tenant, from 0 to 1. `busyMs`: the time that what is shared has worked so far. */
  constructor(share: number, monotonicMs: () => number, busyMs: () => number) {
    this.#share = share
    this.#monotonicMs = monotonicMs
    this.#busyMs = busyMs
  }

  /** Whether a tenant with so many pieces of work in progress may begin another one beside others. */
  mayBegin(tenant: string, inProgress: number): boolean {
    const usage = this.#usages.get(tenant)
    if (usage === undefined) return true
    return (
      usage.paidUntilMs <= this.#monotonicMs() + BURST_MS &&
      (inProgress === 0 || (inProgress + 1) * usage.meanMs <= IN_PROGRESS_MAX_MS)
    )
  }

  /** Returns a function that ends the work and charges its time, for which a tenant that is alone owes nothing. */
  begin({ tenant, costFactor = 1, laterMs = 0 }: Account): (isAlone: boolean) => void {
    this.#pass(1)
    const sinceMs = this.#chargedMs
    return isAlone => {
      this.#pass(-1)
      const timeMs = Math.min(CHARGE_MAX_MS, this.#chargedMs - sinceMs)
      this.#charge(tenant, timeMs * costFactor + laterMs, isAlone)
    }
  }

  #pass(change: 1 | -1): void {
    const busyMs = this.#busyMs()
    if (this.#inProgress > 0) this.#chargedMs += (busyMs - this.#chargedAtMs) / this.#inProgress
    this.#chargedAtMs = busyMs
    this.#inProgress += change
  }

  #charge(tenant: string, costMs: number, isAlone: boolean): void {
    if (this.#share >= 1) return
    const nowMs = this.#monotonicMs()
    const { meanMs, paidUntilMs } = this.#usages.get(tenant) ?? { meanMs: MEAN_MS_INITIAL, paidUntilMs: nowMs }
    this.#usages.delete(tenant)
    this.#usages.set(tenant, {
      meanMs: meanMs + (costMs - meanMs) * MEAN_WEIGHT,
      paidUntilMs: isAlone ? paidUntilMs : Math.max(nowMs, paidUntilMs) + costMs / this.#share,
    })
    if (this.#usages.size > TENANTS_MAX) this.#forget(nowMs)
  }

  /** The least recently charged first. */
  #forget(nowMs: number): void {
    for (const [tenant, { paidUntilMs }] of this.#usages) {
      if (this.#usages.size <= TENANTS_MAX) return
      if (paidUntilMs <= nowMs) this.#usages.delete(tenant)
    }
  }
}
