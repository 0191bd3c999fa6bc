import { currentAccount } from '../fairness/currentAccount.ts'
import { HELD_UNTIL_DONE, type TurnLimits, Turns } from '../fairness/turns.ts'
import type { World } from '../ports.ts'

/** Reads that fold a whole stream for one request: one at a time of a tenant, two in a process, in short pieces. */

const AT_ONCE_MAX = 2

const LIMITS: TurnLimits = {
  ...HELD_UNTIL_DONE,
  turns: () => AT_ONCE_MAX,
  shareAlone: 1 / AT_ONCE_MAX,
  shareBesideOthers: 1 / AT_ONCE_MAX,
  waitMaxMs: 5_000,
  waitingMax: { caller: 20, tenant: 100, all: 1_000 },
}

export const createLongReads = (clock: Pick<World, 'monotonicMs' | 'sleep'>): Turns => new Turns(LIMITS, clock)

const PIECE_MS = 1
/** Beside other tenants a read works a quarter of the time. */
const PAUSE_FACTOR = 3
const PAUSE_MAX_MS = 30

/** Returns a function to be awaited after each event: other requests are served in its pauses. */
export const createPauses = ({ monotonicMs, sleep }: Pick<World, 'monotonicMs' | 'sleep'>): (() => Promise<void>) => {
  const isAlone = currentAccount()?.isAlone ?? (() => true)
  let sinceMs = monotonicMs()
  return async () => {
    const workedMs = monotonicMs() - sinceMs
    if (workedMs < PIECE_MS) return
    await sleep(isAlone() ? 0 : Math.min(workedMs * PAUSE_FACTOR, PAUSE_MAX_MS))
    sinceMs = monotonicMs()
  }
}
