import { z } from 'zod'
import type { ApiKeyRow } from '../../../../projections/apiKeys/projection.ts'
import { API_KEY_STATES, shownState } from '../../../../projections/apiKeys/queries.ts'
import { resourceView } from '../../../../projections/projection.ts'
import { type ApiKeyId, idSchema } from '../../../../streams/ids.ts'
import type { ApiKeySecrets } from '../../../identity/apiKeySecrets.ts'
import { READ_SCOPES, type ReadScope } from '../../../identity/principal.ts'
import { metadataSchema, resourceShape, textSchema, timeSchema } from '../commonSchemas.ts'

const NAME_CHARS_MAX = 100
const LIFETIME_DAYS_MAX = 90
const QUOTA_REQUESTS_MAX = 1_000_000_000
const HOUR_SECONDS = 60 * 60
const DAY_SECONDS = 24 * HOUR_SECONDS
const QUOTA_WINDOW_SECONDS_MAX = 30 * DAY_SECONDS
const OVERLAP_SECONDS = DAY_SECONDS
const OVERLAP_SECONDS_MAX = 7 * DAY_SECONDS

const scopeSchema = z.enum(READ_SCOPES as [ReadScope, ...ReadScope[]], {
  error: `API keys are read-only. To write, use an access token; /problems/insufficient_scope says how to get one. Must be one of ${READ_SCOPES.join(', ')}.`,
})

const quotaSchema = z
  .strictObject({
    requests: z.int().min(1).max(QUOTA_REQUESTS_MAX),
    window_seconds: z.int().min(1).max(QUOTA_WINDOW_SECONDS_MAX),
  })
  .meta({
    description: 'The quota of the key: a number of requests in a number of seconds, in addition to all other limits.',
  })

export const newApiKey = z
  .strictObject({
    name: textSchema.max(NAME_CHARS_MAX).meta({ description: 'The purpose of the key, in the caller’s words.' }),
    scopes: z
      .array(scopeSchema)
      .min(1)
      .refine(scopes => new Set(scopes).size === scopes.length, { message: 'Name each scope only once.' })
      .meta({ description: 'The read scopes of the key; the caller must hold each of them.', uniqueItems: true }),
    expires_in_days: z.int().min(1).max(LIFETIME_DAYS_MAX).default(LIFETIME_DAYS_MAX),
    quota: quotaSchema.nullable().default(null),
    metadata: metadataSchema.default({}),
  })
  .meta({ id: 'NewApiKey' })

export const apiKeySchema = z
  .object({
    id: idSchema('key'),
    state: z.enum(API_KEY_STATES),
    ...resourceShape,
    name: z.string(),
    prefix: z.string().meta({ description: 'The beginning of the key, to recognise it by.' }),
    scopes: z.array(scopeSchema),
    quota: quotaSchema.nullable(),
    expires_at: timeSchema.meta({
      description: 'The time at which the newest secret expires. A rotation starts a new period.',
    }),
    rotated_at: timeSchema.nullable(),
    previous_secret_until: timeSchema
      .nullable()
      .meta({ description: 'The time until which the previous secret works as well.' }),
    revoked_at: timeSchema.nullable(),
  })
  .meta({ id: 'ApiKey' })

export const withSecretSchema = apiKeySchema
  .extend({
    secret: z.string().meta({ description: 'The whole key, for the header X-API-Key. No other response shows it.' }),
  })
  .meta({ id: 'ApiKeyWithSecret' })

export const rotation = z
  .strictObject({ overlap_seconds: z.int().min(0).max(OVERLAP_SECONDS_MAX).default(OVERLAP_SECONDS) })
  .default({ overlap_seconds: OVERLAP_SECONDS })

/** The view of a key at the time `now` (RFC 3339). */
export const apiKeyView = (secrets: ApiKeySecrets, row: ApiKeyRow, now: string): z.input<typeof apiKeySchema> => ({
  id: row.id as ApiKeyId,
  state: shownState(row, now),
  ...resourceView(row),
  name: row.name,
  prefix: secrets.prefixOf(row.id as ApiKeyId),
  scopes: READ_SCOPES.filter(scope => row.scopes.includes(scope)),
  quota: row.quota,
  expires_at: row.expires_at,
  rotated_at: row.rotated_at,
  previous_secret_until: row.previous_secret_until,
  revoked_at: row.revoked_at,
})
