import type { ApiKeyEvent, KeyQuota } from '../../streams/apiKey/index.ts'
import type { Annotations } from '../../streams/idempotencyRecord.ts'
import { type Projection, RESOURCE_COLUMNS, type ResourceRow } from '../projection.ts'

/** The row has nothing of the secrets, not even their hashes, because a list does not need them. */
export type ApiKeyRow = ResourceRow & {
  readonly state: 'active' | 'revoked'
  readonly name: string
  readonly scopes: readonly string[]
  readonly quota: KeyQuota | null
  readonly expires_at: string
  readonly rotated_at: string | null
  /** The end of the previous secret; null when there is none. */
  readonly previous_secret_until: string | null
  readonly revoked_at: string | null
  readonly metadata: Annotations
}

export const apiKeys: Projection<ApiKeyEvent, ApiKeyRow> = {
  name: 'api_keys_v1',
  category: 'apiKey',
  columns: {
    ...RESOURCE_COLUMNS,
    name: 'text',
    scopes: 'json',
    quota: 'json',
    expires_at: 'timestamptz',
    rotated_at: 'timestamptz',
    previous_secret_until: 'timestamptz',
    revoked_at: 'timestamptz',
    metadata: 'json',
  },
  first: 'ApiKeyIssued',
  begin: ({ event }) => {
    if (event.type !== 'ApiKeyIssued') throw new TypeError(event.type)
    const { name, scopes, quota, expires_at, metadata } = event.data
    const later = { rotated_at: null, previous_secret_until: null, revoked_at: null }
    return { state: 'active', name, scopes, quota, expires_at, ...later, metadata }
  },
  on: {
    ApiKeyIssued: () => ({}),
    ApiKeyRotated: (_, { event: { data }, metadata }) => ({
      expires_at: data.expires_at,
      rotated_at: metadata.at,
      previous_secret_until: Date.parse(data.previous_until) > Date.parse(metadata.at) ? data.previous_until : null,
    }),
    ApiKeyRevoked: (_, { metadata }) => ({ state: 'revoked', previous_secret_until: null, revoked_at: metadata.at }),
  },
}
