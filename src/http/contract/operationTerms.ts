import type { PrincipalKind } from '../../identity/principal.ts'
import { isForApiKeys } from './errorCodesOfRoute.ts'
import { deadlineOf } from '../response/deadlines.ts'
import type { AnyRoute } from '../route.ts'

/**
 * The terms of an operation that OpenAPI has no member for: permitted credentials, rate class, deadline and order of
 * pages. The contract diff compares them, and the description of the operation says them in words.
 */

const MS_PER_SECOND = 1_000

const TOKENS: readonly PrincipalKind[] = ['user', 'workload']

/** The kinds of credential that may call the operation; empty for a public one. */
const credentialsOf = (declared: AnyRoute): readonly PrincipalKind[] => {
  if (declared.scope === 'none') return []
  const permitted = TOKENS.filter(kind => declared.kinds === undefined || declared.kinds.includes(kind))
  return isForApiKeys(declared) ? [...permitted, 'api_key'] : permitted
}

/** The scopes of which one suffices; empty for a public operation. */
const scopesOf = ({ scope, orScopes = [] }: AnyRoute): readonly string[] =>
  scope === 'none' ? [] : [scope, ...orScopes]

/** Each scope of a token suffices alone. OpenAPI has no scopes of API keys: they are in `x-scopes`. */
export const securityOf = (declared: AnyRoute): Record<string, string[]>[] => [
  ...scopesOf(declared).map(scope => ({ oauth: [scope] })),
  ...(isForApiKeys(declared) ? [{ apiKey: [] }] : []),
]

export const termsOf = (declared: AnyRoute) => ({
  'x-scopes': scopesOf(declared),
  'x-credentials': credentialsOf(declared),
  'x-rate-class': declared.rateClass,
  'x-deadline-seconds': deadlineOf(declared) / MS_PER_SECOND,
  ...(declared.order ? { 'x-order': declared.order } : {}),
})

const CREDENTIAL_NAMES: Readonly<Record<PrincipalKind, string>> = {
  user: 'a user’s token',
  workload: 'a workload’s token',
  api_key: 'an API key',
}

const permissionSentence = (declared: AnyRoute): string => {
  const scopes = scopesOf(declared)
  if (scopes.length === 0) return 'Public: needs no credential.'
  const credentials = credentialsOf(declared).map(kind => CREDENTIAL_NAMES[kind])
  return `Permitted with ${credentials.join(' or ')} that has the scope ${scopes.join(' or ')}.`
}

const orderSentence = (order: readonly string[]): string => {
  const keys = order.map(key => (key.startsWith('-') ? `${key.slice(1)} (descending)` : key))
  return `Items are ordered by ${keys.join(', then ')}.`
}

/** The description of an operation: that of its declaration, and its terms in words. */
export const descriptionOf = (declared: AnyRoute): string =>
  [
    declared.description,
    permissionSentence(declared),
    declared.ifMatch && 'The header If-Match is required.',
    declared.idempotencyKey === 'required' && 'The header Idempotency-Key is required.',
    declared.idempotencyKey === 'honoured' && 'An Idempotency-Key makes the request safe to repeat.',
    declared.order && orderSentence(declared.order),
    `Rate class: ${declared.rateClass}. Deadline: ${deadlineOf(declared) / MS_PER_SECOND} s.`,
  ]
    .filter(Boolean)
    .join(' ')
