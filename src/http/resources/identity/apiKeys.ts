import { z } from 'zod'
import { apiKeys } from '../../../../projections/apiKeys/projection.ts'
import { apiKeyPage } from '../../../../projections/apiKeys/queries.ts'
import type { ApiKeyEvent, ApiKeyState } from '../../../../streams/apiKey/index.ts'
import type { IdempotencyRecord } from '../../../../streams/idempotencyRecord.ts'
import { type ApiKeyId, idSchema } from '../../../../streams/ids.ts'
import { create, rowUntil } from '../../../commands/idempotentCreation.ts'
import { keyConflict } from '../../../commands/idempotencyKeyConflicts.ts'
import { takeApiKeySlot } from '../../../commands/apiKeyQuota.ts'
import { apiKeyEntity } from '../../../commands/entities.ts'
import { handle } from '../../../commands/commandHandler.ts'
import { idOfKey, randomId } from '../../../commands/identifiers.ts'
import type { ApiKeySecrets } from '../../../identity/apiKeySecrets.ts'
import { type Principal, READ_SCOPES } from '../../../identity/principal.ts'
import { apiKeySchema, apiKeyView, newApiKey, rotation, withSecretSchema } from './apiKeySchemas.ts'
import { noApiKeys } from '../../access/authentication.ts'
import { readPage } from '../collection.ts'
import { etagAt, isNotModified } from '../../request/conditional.ts'
import { bindKeyOf, idempotencyRecordIfKeyed } from '../../request/idempotencyKey.ts'
import { insufficientScope, Problem } from '../../response/problemCatalogue.ts'
import {
  replyToCommand,
  replyToCreation,
  changedHeaders,
  PRIVATE_CACHING,
  visible,
  visibleRow,
} from '../commonReplies.ts'
import { type AnyRoute, type Call, type Reply, route } from '../../route.ts'
import { resourceById } from '../commonSchemas.ts'
import { createdQuery, pageQuery, listOf } from '../paging.ts'

/** The endpoints of API keys. */

const NONCE_BYTES = 32

type AnyCall = Call<unknown, unknown, unknown>

/** Throws Problem without the setting API_KEY_PEPPER. */
const secretsOf = ({ keySecrets }: AnyCall): ApiKeySecrets => {
  if (keySecrets === undefined) throw noApiKeys()
  return keySecrets
}

const nowOf = ({ ledger }: AnyCall): string => new Date(ledger.world.now()).toISOString()
const newNonce = ({ ledger }: AnyCall): string => Buffer.from(ledger.world.randomBytes(NONCE_BYTES)).toString('hex')

/** Checks that the caller holds the scopes of the key that it issues or rotates. Throws Problem. */
const permitGrant = ({ scopes: held }: Principal, scopes: readonly string[]): void => {
  const lacking = scopes.filter(scope => !held.has(scope))
  if (lacking.length > 0) throw insufficientScope(lacking, `You cannot give what you lack: ${lacking.join(', ')}.`)
}

/** Takes one of the tenant's slots for live keys, since each key has rate limits of its own. Throws Problem. */
const takeSlot = async (call: AnyCall, id: ApiKeyId, renewed: boolean): Promise<void> => {
  const { database, principal, apiKeysPerTenantMax: max } = call
  if (await takeApiKeySlot(database, { tenant: principal.tenant, id, renewed, now: nowOf(call), max })) return
  throw new Problem('quota_exceeded', {
    detail: `The tenant has ${max} live API keys: revoke one, or wait until one has expired.`,
  })
}

const hasExpired = (key: ApiKeyState, nowMs: number): boolean =>
  key.status === 'active' && Date.parse(key.current.expires_at) <= nowMs

const byId = z.object({ id: idSchema('key') })
const PATH = '/api-keys'
const common = { tag: 'API keys', rateClass: 'default', scope: 'keys:manage' } as const
const shown = { description: 'The API key with its secret.', schema: withSecretSchema } as const

const issueApiKey = route({
  ...common,
  method: 'POST',
  path: PATH,
  operationId: 'issue_api_key',
  audited: 'created',
  summary: 'Issue an API key; the response is the only one that shows its secret',
  body: newApiKey,
  idempotencyKey: 'honoured',
  responses: { 201: { ...shown, headers: ['Location', 'ETag', 'Ledger-Position', 'Idempotent-Replayed'] } },
  errors: ['quota_exceeded'],
  handler: async call => {
    const { ledger, context, idempotency, principal } = call
    const secrets = secretsOf(call)
    const { expires_in_days: lifetime_days, scopes: asked, ...terms } = call.body
    permitGrant(principal, asked)
    // In a fixed order, so that a request with the scopes in another order is the same request.
    const scopes = READ_SCOPES.filter(scope => asked.includes(scope))
    const id = idempotency ? idOfKey('key', idempotency) : randomId('key', ledger.world)
    await takeSlot(call, id, false)
    const idempotencyRecord = idempotencyRecordIfKeyed(call, { ...terms, scopes, expires_in_days: lifetime_days })
    const nonce = newNonce(call)
    const newSecret = { at: context.at, nonce, hash: secrets.hashOf(id, nonce) }
    const command = {
      type: 'IssueApiKey' as const,
      ...terms,
      scopes,
      lifetime_days,
      ...newSecret,
      claim: idempotencyRecord,
    }
    const created = await create(ledger, apiKeyEntity, id, { command, context, idempotencyRecord })
    // The state at creation, so that a replay has the same response after later changes.
    const reply = await replyToCreation(call, created, PATH, row => apiKeyView(secrets, row, row.created_at))
    const first = created.kind === 'created' ? nonce : await firstNonceOf(call, id)
    return { ...reply, body: { ...(reply.body as object), secret: secrets.keyOf(id, first) } }
  },
})

/** The nonce of the first secret, so that a replay shows the same secret even after rotations. */
const firstNonceOf = async ({ ledger }: AnyCall, id: ApiKeyId): Promise<string> => {
  const issued = await ledger.aggregates.first(apiKeyEntity, id)
  if (issued?.event.type !== 'ApiKeyIssued') throw new Error(`${id} was never issued.`)
  return issued.event.data.nonce
}

const readApiKey = route({
  ...common,
  method: 'GET',
  path: `${PATH}/{id}`,
  operationId: 'read_api_key',
  summary: 'Read an API key, without its secret',
  params: byId,
  ...resourceById(apiKeySchema, 'The API key.'),
  handler: async call => {
    const secrets = secretsOf(call)
    const row = await visibleRow(call, apiKeyEntity, call.params.id)
    const body = apiKeyView(secrets, row, nowOf(call))
    // The expiry changes the view without an event, so it is a part of the tag.
    const etag = etagAt(row.revision, body.state === 'expired' ? 1 : 0, call.apiVersion)
    const headers = { ETag: etag, ...PRIVATE_CACHING }
    return isNotModified(call.ifNoneMatch, etag) ? { status: 304, headers } : { status: 200, body, headers }
  },
})

const listApiKeys = route({
  ...common,
  method: 'GET',
  path: PATH,
  operationId: 'list_api_keys',
  summary: 'List the API keys of the tenant, newest first, without their secrets',
  query: z.object({ ...pageQuery, ...createdQuery, state: apiKeySchema.shape.state.optional() }),
  ...listOf(apiKeySchema),
  handler: async call => {
    const secrets = secretsOf(call)
    const now = nowOf(call)
    return readPage(call, { name: apiKeys.name, page: apiKeyPage(now), render: row => apiKeyView(secrets, row, now) })
  },
})

const rotateApiKey = route({
  ...common,
  method: 'POST',
  path: `${PATH}/{id}:rotate`,
  operationId: 'rotate_api_key',
  audited: 'path',
  summary: 'Rotate an API key: it gets a new secret, and the previous one works for a limited time',
  params: byId,
  body: rotation,
  idempotencyKey: 'honoured',
  responses: { 200: { ...shown, headers: ['ETag', 'Ledger-Position', 'Idempotent-Replayed'] } },
  errors: ['quota_exceeded', 'too_many_changes'],
  handler: async call => {
    const { ledger, context, params, principal, body } = call
    const secrets = secretsOf(call)
    const key = await ledger.aggregates.loadOwn(apiKeyEntity, params.id, principal.tenant)
    permitGrant(principal, visible(call, key?.row).scopes)
    if (key && hasExpired(key.state, ledger.world.now())) await takeSlot(call, params.id, true)
    const idempotencyRecord = idempotencyRecordIfKeyed(call, { id: params.id, ...body })
    await bindKeyOf(call, idempotencyRecord, { about: params.id, path: PATH })
    const nonce = newNonce(call)
    const newSecret = { at: context.at, nonce, hash: secrets.hashOf(params.id, nonce) }
    const command = { type: 'RotateApiKey' as const, ...newSecret, ...body, claim: idempotencyRecord }
    const handled = await handle(ledger, apiKeyEntity, params.id, { command, context })
    const isReplay = handled.ok && handled.state.status !== 'none' && !isCurrent(handled.state, nonce)
    if (isReplay && idempotencyRecord) return replyOfFirstRotation(call, params.id, idempotencyRecord)
    const secret = secrets.keyOf(params.id, nonce)
    return replyToCommand(call, handled, row => ({ ...apiKeyView(secrets, row, context.at), secret }))
  },
})

const isCurrent = (key: ApiKeyState, nonce: string): boolean => key.status === 'active' && key.current.nonce === nonce

/**
 * The response of the first request with this key. If a repeated request rotated again, a secret that no caller
 * received would become the newer one, and the secret in use would end.
 */
const replyOfFirstRotation = async (
  call: AnyCall,
  id: ApiKeyId,
  idempotencyRecord: IdempotencyRecord,
): Promise<Reply> => {
  const { ledger } = call
  const events = ledger.aggregates.events(apiKeyEntity, id)
  const first = await rowUntil(apiKeyEntity, events, event => keyHashOf(event) === idempotencyRecord.key_hash)
  if (first?.last.event.type !== 'ApiKeyRotated') throw new Error(`${id} was never rotated by this request.`)
  const { row, last } = first
  const { nonce, claim: recorded } = first.last.event.data
  const conflict = keyConflict(ledger, id, idempotencyRecord, recorded ?? undefined)
  const secrets = secretsOf(call)
  const outcome = conflict ?? { kind: 'replayed' as const, row, position: last.position }
  const secret = secrets.keyOf(id, nonce)
  const { body, headers } = await replyToCreation(call, outcome, PATH, of => ({
    ...apiKeyView(secrets, of, of.updated_at),
    secret,
  }))
  const { Location: _, ...others } = headers ?? {}
  return { status: 200, body: body ?? {}, headers: others }
}

const keyHashOf = (event: ApiKeyEvent): string | undefined =>
  event.type === 'ApiKeyRotated' ? event.data.claim?.key_hash : undefined

const revokeApiKey = route({
  ...common,
  method: 'DELETE',
  path: `${PATH}/{id}`,
  operationId: 'revoke_api_key',
  endsWork: true,
  audited: 'path',
  summary: 'Revoke an API key; it stops working within seconds',
  params: byId,
  responses: { 204: { description: 'The API key is revoked.', headers: ['Ledger-Position'] } },
  errors: [],
  handler: async call => {
    const { ledger, context, params } = call
    const secrets = secretsOf(call)
    await visibleRow(call, apiKeyEntity, params.id)
    const handled = await handle(ledger, apiKeyEntity, params.id, { command: { type: 'RevokeApiKey' }, context })
    if (!handled.ok) return replyToCommand(call, handled, row => apiKeyView(secrets, row, context.at))
    return { status: 204, headers: { 'Ledger-Position': changedHeaders(call, handled)['Ledger-Position'] } }
  },
})

export const apiKeyRoutes: readonly AnyRoute[] = [issueApiKey, listApiKeys, readApiKey, rotateApiKey, revokeApiKey]
