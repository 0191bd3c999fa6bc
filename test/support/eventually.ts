import { setTimeout as sleep } from 'node:timers/promises'

/** Waits of tests: for a state, which is looked for again and again. */

const LOOK_EVERY_MS = 25
/** The longer a state has not come, the less often it is looked for: the test takes a tenth longer at most. */
const PAUSE_SHARE = 0.1

export type Found<T> = Exclude<NonNullable<T>, false>

/** Generous, for a machine under load: a wait ends when the state has come. */
const WAIT_MAX_MS = 120_000

/** The first truthy result of `look`. Throws after `maxMs`. */
export const eventually = async <T>(look: () => Promise<T> | T, maxMs = WAIT_MAX_MS): Promise<Found<T>> => {
  const firstMs = performance.now()
  const deadline = firstMs + maxMs
  for (;;) {
    const beganMs = performance.now()
    const actual = await look()
    const nowMs = performance.now()
    if (actual) return actual as Found<T>
    if (nowMs > deadline) throw new Error(`Not found in ${maxMs} ms: ${look.toString()}`)
    // Polling must not take processor time from the work that it waits for.
    await sleep(Math.max(LOOK_EVERY_MS, nowMs - beganMs, (nowMs - firstMs) * PAUSE_SHARE))
  }
}

const STILL_MS = 300

/** Waits until the number has grown, and then stays as it is: whatever counts has to wait by then. Resolves to the number. */
export const standstill = async (count: () => number): Promise<number> => {
  let before = 0
  await eventually(async () => {
    before = count()
    await sleep(STILL_MS)
    return before > 0 && count() === before
  })
  return before
}

/** A process that gets this part of a processor needs so many times as long for everything. */
const LOADED_TIMES = 6

/**
 * Waits until the change is in effect. A look that begins `LOADED_TIMES * withinMs` after this call, or later, must find it:
 * `withinMs` is the promise of a service that is not starved of processor time.
 */
export const takesEffect = (isInEffect: () => Promise<boolean>, withinMs: number): Promise<true> => {
  const maxMs = LOADED_TIMES * withinMs
  const startedAtMs = performance.now()
  return eventually(async () => {
    const isLate = performance.now() - startedAtMs >= maxMs
    const actual = await isInEffect()
    if (isLate && !actual) throw new Error(`Not in effect after ${maxMs} ms: ${isInEffect.toString()}`)
    return actual
  })
}
