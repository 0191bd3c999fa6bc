import { z } from 'zod'
import { KEYED_OPERATIONS, outcomeOfKey } from '../../commands/idempotency/keyStatus.ts'
import { parseKey } from '../request/idempotencyKey.ts'
import { type AnyRoute, route } from '../route.ts'
import { timeSchema } from './commonSchemas.ts'

/** 255 characters, each with a backslash before it, in quotes. */
const WRITTEN_KEY_CHARS_MAX = 512

const outcomeSchema = z
  .object({
    operation: z.enum(KEYED_OPERATIONS),
    status: z.enum(['never_seen', 'in_progress', 'succeeded', 'rejected', 'expired']),
    expires_at: timeSchema.nullable(),
    links: z.object({ result: z.string().optional(), operation: z.string().optional() }),
  })
  .meta({ id: 'IdempotencyKey' })

const readKey = route({
  method: 'GET',
  path: '/idempotency-keys/{key}',
  operationId: 'read_idempotency_key',
  summary: 'Read the outcome of the caller’s own Idempotency-Key',
  tag: 'Payments',
  scope: 'payments:read',
  params: z.object({
    key: z
      .string()
      .min(1)
      .max(WRITTEN_KEY_CHARS_MAX)
      .meta({ description: 'The key, percent-encoded, with or without quotes.' }),
  }),
  query: z.object({ operation: z.enum(KEYED_OPERATIONS).default('create_payment') }),
  responses: { 200: { description: 'The outcome of the key.', schema: outcomeSchema } },
  errors: ['idempotency_key_invalid'],
  handler: async ({ params, query: { operation }, principal, ledger }) => {
    const { tenant, subject, client } = principal
    const scope = { tenant, subject, client, operation }
    const key = { scope, key: parseKey(params.key), secret: await ledger.idSecret() }
    const outcome = await outcomeOfKey(ledger, operation, key)
    if (outcome.status === 'never_seen')
      return { status: 200, body: { operation, status: outcome.status, expires_at: null, links: {} } }
    const { status, href, expiresAt } = outcome
    const isPayment = operation === 'create_payment'
    const links = {
      result: href,
      ...(isPayment ? { operation: href.replace('/payments/pay_', '/operations/op_') } : {}),
    }
    return { status: 200, body: { operation, status, expires_at: expiresAt, links } }
  },
})

export const idempotencyKeyRoutes: readonly AnyRoute[] = [readKey]
