import type { SubscriptionDelivery } from '../../feeds/subscriptionCheckpoints.ts'

/**
 * Round robin over tenants, and over the subscriptions of each: the one whose last turn is the longest ago is the next, and
 * a newcomer is behind all who are there already. So neither many subscriptions nor new ones of a tenant keep those of another tenant waiting.
 */

export type Turns<T> = {
  /** Those whose turn comes first at the beginning. Who is not among them is forgotten. */
  readonly inOrder: (items: readonly T[]) => T[]
  readonly taken: (item: T) => void
}

type Queue<T> = Turns<T> & {
  /** It waits from now on. */
  readonly joins: (item: T) => void
}

export const createTurns = <T>(keyOf: (item: T) => string): Queue<T> => {
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
    taken: item => void lastTurns.set(keyOf(item), ++turn),
  }
}

type Place = Pick<SubscriptionDelivery, 'id' | 'tenant_id'>

/** One of each tenant, then the second of each, and so on. */
export const createTenantTurns = <L extends Place>(): Turns<L> => {
  const tenants = createTurns<readonly L[]>(([first]) => first?.tenant_id ?? '')
  const own = createTurns<L>(({ id }) => id)
  return {
    inOrder: lines => {
      const ordered = own.inOrder(lines)
      const queues = tenants.inOrder([...Map.groupBy(ordered, ({ tenant_id }) => tenant_id).values()])
      const longest = Math.max(0, ...queues.map(({ length }) => length))
      return Array.from({ length: longest }, (_, place) =>
        queues.flatMap(queue => queue.slice(place, place + 1)),
      ).flat()
    },
    taken: line => {
      own.taken(line)
      tenants.taken([line])
    },
  }
}
