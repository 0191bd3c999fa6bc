import { setImmediate as nextTurn } from 'node:timers/promises'

/** A clock that stands still until the test lets time pass. Sleepers wake in the order of their times. */
export const createManualClock = () => {
  let nowMs = 0
  let sleepers: { readonly atMs: number; readonly wake: () => void }[] = []
  const pass = async (timeMs: number): Promise<void> => {
    const endMs = nowMs + timeMs
    for (;;) {
      await nextTurn()
      const [next] = sleepers.toSorted((one, other) => one.atMs - other.atMs)
      if (next === undefined || next.atMs > endMs) break
      sleepers = sleepers.filter(sleeper => sleeper !== next)
      nowMs = next.atMs
      next.wake()
    }
    nowMs = endMs
    await nextTurn()
  }
  return {
    pass,
    monotonicMs: (): number => nowMs,
    sleep: (timeMs: number): Promise<void> =>
      new Promise(wake => {
        sleepers.push({ atMs: nowMs + timeMs, wake })
      }),
  }
}
