import { z } from 'zod'
import { type ApiKeyRow, apiKeys } from '../../../../projections/apiKeys/projection.ts'
import { apiKeyPage } from '../../../../projections/apiKeys/queries.ts'
import type { ApiKeyEvent, ApiKeyState } from '../../../../streams/apiKey/index.ts'
import { isRejection } from '../../../../streams/decider.ts'
import type { IdempotencyRecord } from '../../../../streams/idempotencyRecord.ts'
import { type ApiKeyId, idSchema } from '../../../../streams/ids.ts'
import { create, type CreationResult, replay, rowUntil } from '../../../commands/idempotency/creation.ts'
import { keyConflict } from '../../../commands/idempotency/conflicts.ts'
import { apiKeyEntity } from '../../../commands/entities.ts'
import { handle } from '../../../commands/commandHandler.ts'
import { randomId } from '../../../lib/identifiers.ts'
import { idOfKey } from '../../../commands/idempotency/record.ts'
import { decisionOn } from '../../../commands/streamGrowth.ts'
import { READ_SCOPES } from '../../../identity/principal.ts'
import { newNonce, nowOf, permitGrant, secretsOf, takeSlot } from './apiKeyGrants.ts'
import { apiKeySchema, apiKeyView, newApiKey, rotation, withSecretSchema } from './apiKeySchemas.ts'
import { readPage } from '../collection.ts'
import { etagOf } from '../../request/entityTags.ts'
import { bindKeyOf, idempotencyRecordIfKeyed, idempotencyRecordOf, isKeyBound } from '../../request/idempotencyKey.ts'
import { replyToCommand, replyToCreation, replyWithTag, visibleRow, visibleState } from '../commonReplies.ts'
import { type AnyRoute, route } from '../../route.ts'
import type { AnyLogCall, LogCall } from '../../services.ts'
import { CREATED_HEADERS, resourceById } from '../commonSchemas.ts'
import { createdQuery, pageQuery, listOf } from '../paging.ts'

const hasExpired = (key: ApiKeyState, nowMs: number): boolean =>
  key.status === 'active' && Date.parse(key.current.expires_at) <= nowMs

const byId = z.object({ id: idSchema('key') })
const PATH = '/api-keys'
const common = { tag: 'API keys', scope: 'keys:manage' } as const
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
  responses: { 201: { ...shown, headers: CREATED_HEADERS } },
  errors: ['quota_exceeded'],
  handler: async call => {
    const { ledger, context, idempotency, principal } = call
    const secrets = secretsOf(call)
    const request = requestOf(call)
    permitGrant(principal, request.scopes)
    const id = idempotency ? idOfKey('key', idempotency) : randomId('key', ledger.world)
    await takeSlot(call, id, false)
    const idempotencyRecord = idempotencyRecordIfKeyed(call, request)
    const { expires_in_days: lifetime_days, ...terms } = request
    const nonce = newNonce(call)
    const newSecret = { at: context.at, nonce, hash: secrets.hashOf(id, nonce) }
    const command = { type: 'IssueApiKey' as const, ...terms, lifetime_days, ...newSecret, claim: idempotencyRecord }
    const created = await create(ledger, apiKeyEntity, id, { command, context, idempotencyRecord })
    return issuedReply(call, id, created, created.kind === 'created' ? nonce : undefined)
  },
  replay: async call => {
    const { ledger, idempotency, principal } = call
    const request = requestOf(call)
    permitGrant(principal, request.scopes)
    const id = idOfKey('key', idempotency)
    const replayed = await replay(ledger, apiKeyEntity, id, idempotencyRecordOf(idempotency, call, request))
    return replayed && issuedReply(call, id, replayed)
  },
})

/** The request as it is compared with a later one under its key: with its scopes in a fixed order. */
const requestOf = ({ body }: LogCall<unknown, unknown, z.output<typeof newApiKey>>) => ({
  ...body,
  scopes: READ_SCOPES.filter(scope => body.scopes.includes(scope)),
})

/** The key at its creation with its first secret, so a replay has the same response after later changes. */
const issuedReply = async (call: AnyLogCall, id: ApiKeyId, created: CreationResult<ApiKeyRow>, nonce?: string) => {
  const secrets = secretsOf(call)
  const reply = await replyToCreation(call, created, PATH, row => apiKeyView(secrets, row, row.created_at))
  const secret = secrets.keyOf(id, nonce ?? (await firstNonceOf(call, id)))
  return { ...reply, body: { ...(reply.body as object), secret } }
}

/** The nonce of the first secret, so a replay shows the same secret even after rotations. */
const firstNonceOf = async ({ ledger }: AnyLogCall, id: ApiKeyId): Promise<string> => {
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
    return replyWithTag(call, etagOf(row.revision, call.apiVersion, { tick: body.state === 'expired' ? 1 : 0 }), body)
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
    const { ledger, context, params, body } = call
    const secrets = secretsOf(call)
    const key = await keyToRotate(call)
    const idempotencyRecord = idempotencyRecordIfKeyed(call, { id: params.id, ...body })
    const nonce = newNonce(call)
    const newSecret = { at: context.at, nonce, hash: secrets.hashOf(params.id, nonce) }
    const command = { type: 'RotateApiKey' as const, ...newSecret, ...body, claim: idempotencyRecord }
    const decided = decisionOn(ledger, apiKeyEntity, key, command)
    const isRenewal = !isRejection(decided) && decided.length > 0 && hasExpired(key.state, ledger.world.now())
    if (isRenewal) await takeSlot(call, params.id, true)
    await bindKeyOf(call, idempotencyRecord, { about: params.id, path: PATH, decided })
    const handled = await handle(ledger, apiKeyEntity, params.id, { command, context })
    const isReplay = handled.ok && handled.state.status !== 'none' && !isCurrent(handled.state, nonce)
    if (isReplay && idempotencyRecord) return replyOfFirstRotation(call, params.id, idempotencyRecord)
    const secret = secrets.keyOf(params.id, nonce)
    return replyToCommand(call, handled, row => ({ ...apiKeyView(secrets, row, context.at), secret }))
  },
  replay: async call => {
    const { params, body, idempotency } = call
    const { state } = await keyToRotate(call)
    const record = idempotencyRecordOf(idempotency, call, { id: params.id, ...body })
    const isBound = await isKeyBound(call, record, { about: params.id, path: PATH })
    if (!isBound || state.status === 'none' || !state.rotations.has(record.key_hash)) return undefined
    return replyOfFirstRotation(call, params.id, record)
  },
})

/** The key before a rotation. Throws Problem if the caller may not see it or give its scopes. */
const keyToRotate = async (call: LogCall<{ id: ApiKeyId }, unknown, unknown>) => {
  const key = await visibleState(call, apiKeyEntity, call.params.id)
  permitGrant(call.principal, key.row.scopes)
  return key
}

const isCurrent = (key: ApiKeyState, nonce: string): boolean => key.status === 'active' && key.current.nonce === nonce

/** The response of the first request with this key: a second rotation would replace a secret in use. */
const replyOfFirstRotation = async (call: AnyLogCall, id: ApiKeyId, idempotencyRecord: IdempotencyRecord) => {
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
  handler: async call => {
    const { ledger, context, params } = call
    const secrets = secretsOf(call)
    await visibleRow(call, apiKeyEntity, params.id)
    const handled = await handle(ledger, apiKeyEntity, params.id, { command: { type: 'RevokeApiKey' }, context })
    if (!handled.ok) return replyToCommand(call, handled, row => apiKeyView(secrets, row, context.at))
    return { status: 204, headers: { 'Ledger-Position': handled.position.toString() } }
  },
})

export const apiKeyRoutes: readonly AnyRoute[] = [issueApiKey, listApiKeys, readApiKey, rotateApiKey, revokeApiKey]
