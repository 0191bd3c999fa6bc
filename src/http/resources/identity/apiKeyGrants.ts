import { timeNow } from '../../../lib/time.ts'
import { reserve } from '../../../commands/quotas/reservations.ts'
import type { ApiKeySecrets } from '../../../identity/apiKeySecrets.ts'
import type { Principal } from '../../../identity/principal.ts'
import type { ApiKeyId } from '../../../../streams/ids.ts'
import { noApiKeys } from '../../access/authentication.ts'
import { insufficientScope, Problem, scopesText } from '../../problems/problemCatalogue.ts'
import type { AnyCall, AnyLogCall } from '../../services.ts'

const NONCE_BYTES = 32

/** Throws Problem without the setting API_KEY_PEPPER. */
export const secretsOf = ({ keySecrets }: AnyLogCall): ApiKeySecrets => {
  if (keySecrets === undefined) throw noApiKeys()
  return keySecrets
}

export const nowOf = ({ ledger }: AnyLogCall): string => timeNow(ledger.world)
export const newNonce = ({ ledger }: AnyLogCall): string =>
  Buffer.from(ledger.world.randomBytes(NONCE_BYTES)).toString('hex')

/** Checks that the caller holds the scopes of the key that it issues or rotates. Throws Problem. */
export const permitGrant = ({ scopes: held }: Principal, scopes: readonly string[]): void => {
  const lacking = scopes.filter(scope => !held.has(scope))
  if (lacking.length > 0)
    throw insufficientScope(lacking, `You can grant only scopes that you hold; you lack ${scopesText(lacking)}.`)
}

/** Takes one of the tenant's slots for live keys, since each key has rate limits of its own. Throws Problem. */
export const takeSlot = async (call: AnyCall, id: ApiKeyId, renewed: boolean): Promise<void> => {
  const { database, principal, apiKeysPerTenantMax: max } = call
  const kind = renewed ? 'api_key_renewals' : 'api_keys'
  const place = { kind, tenant: principal.tenant, id, at: nowOf(call), max: { tenant: max } } as const
  if ((await reserve(database, place)) === undefined) return
  throw new Problem('quota_exceeded', {
    detail: `The tenant has ${max} active API keys, the maximum. Revoke one, or wait until one expires.`,
  })
}
