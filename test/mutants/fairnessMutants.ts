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
    name: 'a client may let a stream grow without end',
    file: 'src/commands/streamGrowth.ts',
    find: `eventCountOf(before) < max ?`,
    replace: `eventCountOf(before) >= 0 ?`,
  },
]
