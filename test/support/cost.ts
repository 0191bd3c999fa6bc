/** How the cost of some work grows with its size, within one run: for tests that must not need a quiet machine. */

const RUNS = 3

/** Processor time of this process, which other processes do not add to; the best of some runs. */
export const costOf = async (work: () => unknown): Promise<number> => {
  const costs: number[] = []
  for (let run = 0; run < RUNS; run += 1) {
    const before = process.cpuUsage()
    await work()
    const { user, system } = process.cpuUsage(before)
    costs.push(user + system)
  }
  return Math.min(...costs)
}

/**
 * The cost per item of a long work, divided by that of a short one: near 1 where the cost is linear, near long / short where
 * it is quadratic. `of` prepares the work on so many items. The short work is done as often as makes the same number of items.
 */
export const growthOfCost = async (
  of: (count: number) => () => unknown,
  { short, long }: { readonly short: number; readonly long: number },
): Promise<number> => {
  const [shortWork, longWork] = [of(short), of(long)]
  const repeated = async (): Promise<void> => {
    for (let items = 0; items < long; items += short) await shortWork()
  }
  await repeated()
  return (await costOf(longWork)) / (await costOf(repeated))
}
