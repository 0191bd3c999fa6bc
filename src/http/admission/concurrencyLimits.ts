import { callerOf, type Principal } from '../../identity/principal.ts'
import { type ConcurrencyLimitSettings, type ConcurrencyPolicy, tenantPolicy } from '../../settings/limits.ts'
import { Problem } from '../problems/problemCatalogue.ts'
import { createLocalSlots, type SlotCounter } from './localSlots.ts'

/** Limits of what a caller, and all callers of its tenant together, may have in progress at once. */

/** A rough value: a slot becomes free when one of the responses ends. */
const RETRY_SECONDS = 5

const NAMES: Readonly<Record<ConcurrencyPolicy, string>> = {
  streams: 'event streams open',
  waits: 'requests waiting for a position',
  downloads: 'downloads in progress',
  manifests: 'requests for manifests in progress',
  exports: 'unfinished exports',
}

export type ConcurrencyLimits = {
  readonly settings: ConcurrencyLimitSettings
  /**
   * Counts one more and resolves to the function that releases it. Throws Problem `rate_limited` when the caller or its
   * tenant has as many as it may have.
   */
  readonly take: (policy: ConcurrencyPolicy, principal: Principal) => Promise<() => void>
}

const tooMany = (who: 'You have' | 'Your tenant has', max: number, counted: string, policy: string): Problem =>
  new Problem('rate_limited', {
    detail: `${who} ${max} ${counted}, the maximum (the limit "${policy}"). Try again when one has ended.`,
    afterSeconds: RETRY_SECONDS,
  })

export const createConcurrencyLimits = (
  settings: ConcurrencyLimitSettings,
  slots: SlotCounter = createLocalSlots(),
): ConcurrencyLimits => ({
  settings,
  take: async (policy, principal) => {
    const releaseCaller = await slots.take(`${policy}:${callerOf(principal)}`, settings[policy])
    if (releaseCaller === undefined) throw tooMany('You have', settings[policy], NAMES[policy], policy)
    const ofTenant = tenantPolicy(policy)
    const releaseTenant = await slots.take(`${ofTenant}:${principal.tenant}`, settings[ofTenant])
    if (releaseTenant === undefined) {
      releaseCaller()
      throw tooMany('Your tenant has', settings[ofTenant], NAMES[policy], ofTenant)
    }
    return () => {
      releaseCaller()
      releaseTenant()
    }
  },
})
