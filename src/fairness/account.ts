/** The account of a piece of work: a tenant, and one of its callers. */

export type Account = {
  readonly tenant: string
  readonly caller: string
  /** How many times its duration a piece of work counts; 1 when absent. */
  readonly costFactor?: number
}

const STRANGER_COST_FACTOR = 4

/**
 * Callers without a valid credential are the callers of one tenant, whose turns count fourfold. It has the empty name,
 * which no tenant has.
 */
export const strangerAccount = (network: string): Account => ({
  tenant: '',
  caller: network,
  costFactor: STRANGER_COST_FACTOR,
})

export const isStranger = ({ tenant }: Account): boolean => tenant === ''
