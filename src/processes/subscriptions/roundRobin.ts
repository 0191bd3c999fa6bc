import type { SubscriptionDelivery } from '../../feeds/subscriptionCheckpoints.ts'

/**
 * Round robin over tenants, and over the subscriptions of each: the item whose last turn is the longest ago is next, and a
 * new one is behind all others. So neither many subscriptions nor new ones of a tenant delay those of another tenant.
 */

export type RoundRobin<T> = {
  /** The items, the next one first. Items that are not passed are forgotten. */
  readonly inOrder: (items: readonly T[]) => T[]
  readonly taken: (item: T) => void
}

type RoundRobinQueue<T> = RoundRobin<T> & {
  /** The item waits from now on, behind all others if it is new. */
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
    taken: item => void lastTurns.set(keyOf(item), ++turn),
  }
}

type Subscription = Pick<SubscriptionDelivery, 'id' | 'tenant_id'>

/** The first subscription of each tenant, then the second of each, and so on. */
export const createTenantRoundRobin = <S extends Subscription>(): RoundRobin<S> => {
  const tenants = createRoundRobin<readonly S[]>(([first]) => first?.tenant_id ?? '')
  const own = createRoundRobin<S>(({ id }) => id)
  return {
    inOrder: subscriptions => {
      const ordered = own.inOrder(subscriptions)
      const queues = tenants.inOrder([...Map.groupBy(ordered, ({ tenant_id }) => tenant_id).values()])
      const longest = Math.max(0, ...queues.map(({ length }) => length))
      return Array.from({ length: longest }, (_, round) =>
        queues.flatMap(queue => queue.slice(round, round + 1)),
      ).flat()
    },
    taken: subscription => {
      own.taken(subscription)
      tenants.taken([subscription])
    },
  }
}
