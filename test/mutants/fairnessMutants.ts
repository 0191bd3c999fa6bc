import type { Mutant } from './mutants.ts'

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
    name: 'a reader of exports downloads the data of a resource that it may not read',
    file: 'src/http/resources/exportContent.ts',
    find: `  call.requireScopes([SCOPE_OF[row.resource]])
`,
    replace: ``,
  },
]
