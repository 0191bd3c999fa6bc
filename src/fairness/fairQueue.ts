import type { Account } from './account.ts'

/**
 * A queue that is fair to tenants first and to their callers second. The next item is that of the tenant, and of its
 * caller, that has used the least so far (start-time fair queueing): more callers gain a tenant nothing, and expensive
 * work delays the next work of its own tenant. An account that had nothing in the queue joins level with the others,
 * without credit for its pause.
 */

type Item = { readonly account: Account }

type Usage = {
  used: number
  /** Items in the queue. */
  waiting: number
  /** Items in the queue, and those that have begun and not ended. */
  active: number
}
type Caller<T> = Usage & { readonly items: T[] }
type Tenant<T> = Usage & { readonly callers: Level<Caller<T>> }

/** Tenants, or the callers of one. `used` is the usage at which the last item was taken. */
type Level<E> = { used: number; readonly entries: Map<string, E> }

/** The charge for an item when it begins; the rest of its cost follows when it ends. */
const BASE_COST = 1

const join = <E extends Usage>(level: Level<E>, name: string, create: () => E): E => {
  const entry = level.entries.get(name) ?? create()
  level.entries.set(name, entry)
  if (entry.waiting === 0) entry.used = Math.max(entry.used, level.used)
  entry.active++
  return entry
}

const begin = <E extends Usage>(level: Level<E>, entry: E): void => {
  level.used = Math.max(level.used, entry.used)
  entry.used += BASE_COST
}

const end = <E extends Usage>(level: Level<E>, name: string, entry: E, cost: number): void => {
  entry.used += Math.max(0, cost - BASE_COST)
  entry.active--
  if (entry.active === 0) level.entries.delete(name)
}

const best = <E>(entries: Iterable<E>, isBetter: (entry: E, than: E) => boolean): E | undefined => {
  let winner: E | undefined
  for (const entry of entries) if (winner === undefined || isBetter(entry, winner)) winner = entry
  return winner
}

const leastUsed = <E extends Usage>({ entries }: Level<E>, mayBegin = (_name: string) => true): E | undefined => {
  const waiting = [...entries].filter(([name, entry]) => entry.waiting > 0 && mayBegin(name))
  return best(waiting, ([, one], [, other]) => one.used < other.used)?.[1]
}

const mostWaiting = <E extends Usage>({ entries }: Level<E>): E | undefined =>
  best(entries.values(), (one, other) => one.waiting > other.waiting)

const newTenant = <T>(): Tenant<T> => ({ used: 0, waiting: 0, active: 0, callers: { used: 0, entries: new Map() } })
const newCaller = <T>(): Caller<T> => ({ used: 0, waiting: 0, active: 0, items: [] })

export class FairQueue<T extends Item> {
  readonly #tenants: Level<Tenant<T>> = { used: 0, entries: new Map() }
  #size = 0

  get size(): number {
    return this.#size
  }

  waitingOf(account: Account): { readonly tenant: number; readonly caller: number } {
    const { tenant, caller } = this.#find(account)
    return { tenant: tenant?.waiting ?? 0, caller: caller?.waiting ?? 0 }
  }

  add(item: T): void {
    const { tenant, caller } = this.#join(item.account)
    caller.items.push(item)
    for (const entry of [tenant, caller]) entry.waiting++
    this.#size++
  }

  /** Whether the item was still in the queue. */
  remove(item: T): boolean {
    const { tenant, caller } = this.#find(item.account)
    const index = caller?.items.indexOf(item) ?? -1
    if (tenant === undefined || caller === undefined || index < 0) return false
    caller.items.splice(index, 1)
    this.#hasLeft(tenant, caller)
    this.end(item.account, 0)
    return true
  }

  /** Takes the next item of those tenants that may begin one; `end` must follow. */
  take(mayBegin: (tenant: string) => boolean): T | undefined {
    const tenant = leastUsed(this.#tenants, mayBegin)
    const caller = tenant && leastUsed(tenant.callers)
    const item = caller?.items.shift()
    if (tenant === undefined || caller === undefined || item === undefined) return undefined
    this.#hasLeft(tenant, caller)
    this.#begin(tenant, caller)
    return item
  }

  /** Charges work that begins without waiting; `end` must follow. */
  begin(account: Account): void {
    const { tenant, caller } = this.#join(account)
    this.#begin(tenant, caller)
  }

  end(account: Account, cost: number): void {
    const { tenant, caller } = this.#find(account)
    if (tenant === undefined || caller === undefined) return
    end(tenant.callers, account.caller, caller, cost)
    end(this.#tenants, account.tenant, tenant, cost)
  }

  /** The newest item of the caller with the most, of the named tenant or else of the one with the most. */
  newestOfLongest(name?: string): T | undefined {
    const tenant = name === undefined ? mostWaiting(this.#tenants) : this.#tenants.entries.get(name)
    return tenant && mostWaiting(tenant.callers)?.items.at(-1)
  }

  items(): T[] {
    const tenants = [...this.#tenants.entries.values()]
    return tenants.flatMap(({ callers }) => [...callers.entries.values()].flatMap(({ items }) => items))
  }

  #find(account: Account): { readonly tenant?: Tenant<T> | undefined; readonly caller?: Caller<T> | undefined } {
    const tenant = this.#tenants.entries.get(account.tenant)
    return { tenant, caller: tenant?.callers.entries.get(account.caller) }
  }

  #join(account: Account): { readonly tenant: Tenant<T>; readonly caller: Caller<T> } {
    const tenant = join(this.#tenants, account.tenant, newTenant<T>)
    return { tenant, caller: join(tenant.callers, account.caller, newCaller<T>) }
  }

  #begin(tenant: Tenant<T>, caller: Caller<T>): void {
    begin(this.#tenants, tenant)
    begin(tenant.callers, caller)
  }

  #hasLeft(...entries: readonly Usage[]): void {
    for (const entry of entries) entry.waiting--
    this.#size--
  }
}
