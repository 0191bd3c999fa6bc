/**
 * The growth of a cost with the size of the work, compared within one run, so that the tests need no quiet machine.
 */

const RUNS = 3
const RUNS_MAX = 7

/** Processor time of this process, which is independent of other processes. */
const costOnce = async (work: () => unknown): Promise<number> => {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return user + system
}

/** The minimum of some runs. */
export const costOf = async (work: () => unknown): Promise<number> => {
  let best = Infinity
  for (let run = 0; run < RUNS; run += 1) best = Math.min(best, await costOnce(work))
  return best
}

/** The minimum of some runs of each work. The works run in alternation, so that other load on the machine affects all. */
export const costsOf = async (works: readonly (() => unknown)[]): Promise<number[]> => {
  const best = works.map(() => Infinity)
  for (let run = 0; run < RUNS; run += 1)
    for (const [n, work] of works.entries()) best[n] = Math.min(best[n] ?? Infinity, await costOnce(work))
  return best
}

export type Sizes = { readonly short: number; readonly long: number }

/**
 * Expects the cost per item of a long work to stay below a multiple of that of a short one: the ratio is near 1 for
 * linear cost, near long / short for quadratic cost. `of` prepares the work for a number of items. The short work is
 * repeated to reach the same number of items. The best runs of both are compared, after as many runs as needed. Rejects
 * with the ratio.
 */
export const expectLinearCost = async (
  of: (count: number) => () => unknown,
  { short, long }: Sizes,
  ratioMax: number,
): Promise<void> => {
  const [shortWork, longWork] = [of(short), of(long)]
  const repeated = async (): Promise<void> => {
    for (let items = 0; items < long; items += short) await shortWork()
  }
  const best = { long: Infinity, repeated: Infinity }
  for (let run = 1; run <= RUNS_MAX; run += 1) {
    best.repeated = Math.min(best.repeated, await costOnce(repeated))
    best.long = Math.min(best.long, await costOnce(longWork))
    if (best.long < ratioMax * best.repeated) return
  }
  throw new Error(`${best.long / best.repeated} times the cost of a short work, ${ratioMax} at most.`)
}
