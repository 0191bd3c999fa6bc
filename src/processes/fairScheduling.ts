/**
 * Fair scheduling of work of several tenants, by round robin: the key whose last turn is the longest ago is next, and a
 * new key comes after all others. A tenant with much work, or with new work, therefore delays another one by a turn
 * only.
 *
 *   createRoundRobin        turns by any key; the other two are built on it
 *   createTenantRoundRobin  turns of tenants, and of the items of each: deliveries to subscriptions, a batch per turn
 *   createTenantScheduler   the next job to begin, for jobs that take long and run beside each other: exports
 */

export type RoundRobin<T> = {
  /** The items, the next one first. Keys without an item are forgotten, so the map does not grow. */
  readonly inOrder: (items: readonly T[]) => T[]
  /** Notes that the item has its turn now, so its key is the last one again. */
  readonly hadTurn: (item: T) => void
}

type RoundRobinQueue<T> = RoundRobin<T> & {
  /** The key of the item waits from now on, as the last one if it is new. */
  readonly joins: (item: T) => void
}

export const createRoundRobin = <T>(keyOf: (item: T) => string): RoundRobinQueue<T> => {
  const lastTurns = new Map<string, number>()
  let turn = 0
  const lastTurn = (item: T): number => lastTurns.get(keyOf(item)) ?? 0
  const joins = (item: T): void => {
    if (!lastTurns.has(keyOf(item))) lastTurns.set(keyOf(item), ++turn)
  }
  return {
    joins,
    inOrder: items => {
      const keys = new Set(items.map(keyOf))
      for (const key of [...lastTurns.keys()]) if (!keys.has(key)) lastTurns.delete(key)
      for (const item of items) joins(item)
      return items.toSorted((a, b) => lastTurn(a) - lastTurn(b))
    },
    hadTurn: item => void lastTurns.set(keyOf(item), ++turn),
  }
}

type TenantItem = { readonly id: string; readonly tenant_id: string }

/** The first item of each tenant, then the second of each, and so on. */
export const createTenantRoundRobin = <T extends TenantItem>(): RoundRobin<T> => {
  const tenants = createRoundRobin<readonly T[]>(([first]) => first?.tenant_id ?? '')
  const own = createRoundRobin<T>(({ id }) => id)
  return {
    inOrder: items => {
      const ordered = own.inOrder(items)
      const queues = tenants.inOrder([...Map.groupBy(ordered, ({ tenant_id }) => tenant_id).values()])
      const longest = Math.max(0, ...queues.map(({ length }) => length))
      return Array.from({ length: longest }, (_, round) =>
        queues.flatMap(queue => queue.slice(round, round + 1)),
      ).flat()
    },
    hadTurn: item => {
      own.hadTurn(item)
      tenants.hadTurn([item])
    },
  }
}

export type TenantScheduler<J> = {
  /** The next due job, if any: of the tenants with the fewest in progress, by turns. A tenant's jobs keep their order. */
  readonly next: (due: readonly J[], underWay: readonly J[]) => J | undefined
}

/** `underWayMax`: a tenant may have this many jobs in progress. */
export const createTenantScheduler = <J>(tenantOf: (job: J) => string, underWayMax = Infinity): TenantScheduler<J> => {
  const tenants = createRoundRobin(tenantOf)
  return {
    next: (due, underWay) => {
      const busy = Map.groupBy(underWay, tenantOf)
      const countOf = (job: J): number => busy.get(tenantOf(job))?.length ?? 0
      const ordered = tenants.inOrder(due).filter(job => countOf(job) < underWayMax)
      const [first] = ordered.toSorted((a, b) => countOf(a) - countOf(b))
      if (first !== undefined) tenants.hadTurn(first)
      return first
    },
  }
}
