import { apiKeyEntity } from '../commands/entities.ts'
import type { Ledger } from '../commands/commandHandler.ts'
import type { Config } from '../settings/config.ts'
import { loadApiKeyPepper } from '../embedded/apiKeyPepper.ts'
import { type ApiKeyVerifier, openApiKeyVerifier } from '../identity/apiKeyVerifier.ts'
import { type ApiKeySecrets, createApiKeySecrets } from '../identity/apiKeySecrets.ts'

/** Opens the secrets of API keys. Undefined in production without a pepper: then requests about keys are refused. */
export const openKeySecrets = async ({ apiKeys, dataDir }: Config): Promise<ApiKeySecrets | undefined> => {
  const { environment, pepper } = apiKeys
  if (pepper !== undefined) return createApiKeySecrets(environment, pepper)
  return environment === 'dev' ? createApiKeySecrets(environment, await loadApiKeyPepper(dataDir)) : undefined
}

/** Keys are loaded from their streams, so a revocation does not wait for the read model. */
export const verifierOf = (secrets: ApiKeySecrets, { aggregates, world }: Ledger): ApiKeyVerifier =>
  openApiKeyVerifier({
    secrets,
    now: () => world.now(),
    load: async id => {
      const { state: key, row } = await aggregates.load(apiKeyEntity, id)
      return row && { tenant: row.tenant_id, subject: row.created_by, key }
    },
  })
