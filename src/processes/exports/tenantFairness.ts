/** Selects the next export to begin, fairly by tenant: a tenant with many exports does not delay all others by all of them. */

export type TenantFairness<J> = {
  /** A job of the tenant with the fewest under way, and among those of the one whose last turn is the longest ago. */
  readonly next: (due: readonly J[], underWay: readonly J[]) => J | undefined
}

export const createTenantFairness = <J>(tenantOf: (job: J) => string): TenantFairness<J> => {
  /** The number of the last turn of each tenant. */
  let last = new Map<string, number>()
  let turn = 0

  return {
    next: (due, underWay) => {
      const busy = Map.groupBy(underWay, tenantOf)
      const rankOf = (job: J): readonly [number, number] => {
        const tenant = tenantOf(job)
        return [busy.get(tenant)?.length ?? 0, last.get(tenant) ?? 0]
      }
      const [first] = due
        .map(job => ({ job, rank: rankOf(job) }))
        .toSorted((a, b) => a.rank[0] - b.rank[0] || a.rank[1] - b.rank[1])
      if (first === undefined) return undefined
      // Tenants without a waiting job are forgotten, so that the map does not grow.
      const waiting = new Set(due.map(tenantOf))
      last = new Map([...last].filter(([tenant]) => waiting.has(tenant)))
      turn += 1
      last.set(tenantOf(first.job), turn)
      return first.job
    },
  }
}
