import { Problem } from '../problems/problemCatalogue.ts'
import type { Call } from '../services.ts'

/** Operators are the callers of the tenant in OPERATORS_TENANT. Throws Problem for others, whatever their scopes. */
export const permitOperator = ({ principal, operatorsTenant }: Call<unknown, unknown, unknown>): void => {
  if (operatorsTenant === undefined || principal.tenant !== operatorsTenant)
    throw new Problem('policy_denied', { detail: 'Only operators of this installation may do this.' })
}
