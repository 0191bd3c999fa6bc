import type { Mutant } from './mutant.ts'

/** Planted bugs that let one tenant slow down the others. */

export const FAIRNESS_MUTANTS: readonly Mutant[] = [
  {
    name: 'a tenant whose requests hold every turn is served before another one',
    file: 'src/fairness/fairQueue.ts',
    find: `one.used < other.used`,
    replace: `false`,
  },
  {
    name: 'a request that hangs holds its turn until it ends',
    file: 'src/fairness/turns.ts',
    find: `      this.#endLongTurns()
      const sinceMs`,
    replace: `      const sinceMs`,
  },
  {
    name: 'each caller of a tenant has a tenant limit of its own',
    file: 'src/http/access/rateLimits.ts',
    find: `count(counter, tenant, tenantPolicy(policy))`,
    replace: `count(counter, caller, tenantPolicy(policy))`,
  },
  {
    name: 'every event stream serializes and seals each fact for itself',
    file: 'src/http/resources/events/eventSender.ts',
    find: `    fact.frames?.set(key, frame)
`,
    replace: '',
  },
]
