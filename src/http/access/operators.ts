import { Problem } from '../problems/problemCatalogue.ts'
import type { Call } from '../services.ts'

/**
 * Operators of the installation are the callers of the tenant that the setting OPERATORS_TENANT names. Throws Problem for
 * a caller of another tenant, whatever its scopes: what they see and do is about all tenants.
 */
export const permitOperator = ({ principal, operatorsTenant }: Call<unknown, unknown, unknown>): void => {
  if (operatorsTenant === undefined || principal.tenant !== operatorsTenant)
    throw new Problem('policy_denied', { detail: 'Only operators of this installation may do this.' })
}
