import { createLocalCounter } from '../adapters/rateLimiter/counters.ts'
import { createLocalSlots } from '../http/admission/localSlots.ts'
import type { PrimaryOperations } from './protocol.ts'

/** Counted in the primary process: one count for each caller, whichever process its requests reach. */

export type LimitOperations = Pick<PrimaryOperations, 'count' | 'takeSlot' | 'freeSlot'>

export type SharedLimits = {
  /** The operations of one child, and the function that releases its slots when it has ended. */
  readonly openFor: () => { readonly operations: LimitOperations; readonly releaseAll: () => void }
}

export const createSharedLimits = (): SharedLimits => {
  const counter = createLocalCounter()
  const slots = createLocalSlots()
  const openFor: SharedLimits['openFor'] = () => {
    const held = new Map<string, (() => void)[]>()
    let hasEnded = false
    const operations: LimitOperations = {
      count: counter.count,
      takeSlot: async (key, max) => {
        const release = await slots.take(key, max)
        if (release === undefined) return false
        // The child may have ended meanwhile.
        if (hasEnded) release()
        else held.set(key, [...(held.get(key) ?? []), release])
        return true
      },
      freeSlot: key => {
        const [release, ...others] = held.get(key) ?? []
        if (others.length > 0) held.set(key, others)
        else held.delete(key)
        release?.()
      },
    }
    const releaseAll = (): void => {
      hasEnded = true
      for (const releases of held.values()) for (const release of releases) release()
      held.clear()
    }
    return { operations, releaseAll }
  }
  return { openFor }
}
