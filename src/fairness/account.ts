/** The account of a piece of work: a tenant, and one of its callers. */

export type Account = {
  readonly tenant: string
  readonly caller: string
  /** How many times its duration a piece of work counts; 1 when absent. */
  readonly costFactor?: number
  /** The time in ms that the work causes after its turn, in stores and feeds. */
  readonly laterMs?: number
  /** Whether no request of another tenant was seen lately in this process. */
  readonly isAlone?: () => boolean
}

/** The names that stand for no tenant. No tenant has them: its name begins with a letter or a digit. */
const STRANGERS = ''
const PROBES = ' '
const STRANGER_COST_FACTOR = 4

/** Callers without a valid credential are the callers of one tenant, whose turns count fourfold. */
export const strangerAccount = (network: string): Account => ({
  tenant: STRANGERS,
  caller: network,
  costFactor: STRANGER_COST_FACTOR,
})

/** Health endpoints are answered under any load of other kinds. */
export const probeAccount = (network: string): Account => ({ tenant: PROBES, caller: network })

export const isAnonymous = ({ tenant }: Account): boolean => tenant === STRANGERS || tenant === PROBES
