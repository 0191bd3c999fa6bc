import type { Engine } from './postgres.ts'
import type { Plan } from './plan.ts'
import { type Options, type Outcome, simulate } from './simulate.ts'

/**
 * Shrinks the plan of a failed run: leaves out halves, then ever smaller parts, and at last single entries, as long as the run
 * still breaks the same promise.
 */
export const shrink = async (engine: Engine, failed: Outcome, options: Options): Promise<Outcome> => {
  const promise = failed.violations[0]?.promise
  let best = failed
  let kept = failed.plan
  const stillFails = async (plan: Plan): Promise<boolean> => {
    const outcome = await simulate(engine, { ...options, plan })
    const isBroken = outcome.violations.some(one => one.promise === promise)
    if (isBroken) best = outcome
    return isBroken
  }
  for (let size = Math.ceil(kept.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2))
    for (let from = 0; from < kept.length; ) {
      const left = kept.filter((_, index) => index < from || index >= from + size)
      if (await stillFails(left)) kept = left
      else from += size
    }
  return best
}
