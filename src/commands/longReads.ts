import { type TurnLimits, Turns } from '../fairness/turns.ts'
import type { World } from '../ports.ts'

/** The turns of reads that fold a whole stream for one request: one at a time of a tenant, two in a process. */

const AT_ONCE_MAX = 2

const LIMITS: TurnLimits = {
  turns: () => AT_ONCE_MAX,
  places: Infinity,
  // A read keeps its turn until it ends; the length of a stream bounds it (streamGrowth.ts).
  turnMaxMs: Infinity,
  shareAlone: 1 / AT_ONCE_MAX,
  shareBesideOthers: 1 / AT_ONCE_MAX,
  onePerLoopTurn: false,
  strangersEveryMs: 0,
  waitMaxMs: 5_000,
  waitingMax: { caller: 20, tenant: 100, all: 1_000 },
}

export const createLongReads = (clock: Pick<World, 'monotonicMs' | 'sleep'>): Turns => new Turns(LIMITS, clock)
