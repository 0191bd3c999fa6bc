import { apiKeyEntity } from '../commands/entities.ts'
import type { Ledger } from '../commands/handle.ts'
import type { Config } from '../config.ts'
import { loadApiKeyPepper } from '../embedded/apiKeyPepper.ts'
import { type ApiKeyVerifier, openApiKeyVerifier } from '../identity/apiKeys.ts'
import { type ApiKeySecrets, createApiKeySecrets } from '../identity/apiKeySecrets.ts'

/** Undefined in production without a pepper: the service runs, and whatever concerns keys says what is missing. */
export const openKeySecrets = async ({ apiKeys, dataDir }: Config): Promise<ApiKeySecrets | undefined> => {
  const { environment, pepper } = apiKeys
  if (pepper !== undefined) return createApiKeySecrets(environment, pepper)
  return environment === 'dev' ? createApiKeySecrets(environment, await loadApiKeyPepper(dataDir)) : undefined
}

/** Keys are looked up in their streams, as the store has them now. */
export const verifierOf = (secrets: ApiKeySecrets, { aggregates, world }: Ledger): ApiKeyVerifier =>
  openApiKeyVerifier({
    secrets,
    now: () => world.now(),
    load: async id => {
      const { state: key, row } = await aggregates.load(apiKeyEntity, id)
      return row && { tenant: row.tenant_id, subject: row.created_by, key }
    },
  })
