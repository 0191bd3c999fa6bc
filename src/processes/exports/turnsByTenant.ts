export type Turns<J> = {
  /** The job that is begun next: of the tenant with the fewest under way, and of those of the one that waits longest. */
  readonly next: (due: readonly J[], underWay: readonly J[]) => J | undefined
}

/** Turns by tenant, so that a tenant with many jobs keeps nobody else waiting for all of them. */
export const createTurns = <J>(tenantOf: (job: J) => string): Turns<J> => {
  /** By tenant, the number of its last turn. */
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
      // A tenant without a job that waits needs no place in the order.
      const waiting = new Set(due.map(tenantOf))
      last = new Map([...last].filter(([tenant]) => waiting.has(tenant)))
      turn += 1
      last.set(tenantOf(first.job), turn)
      return first.job
    },
  }
}
