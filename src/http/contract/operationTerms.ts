import { SECOND_MS } from '../../lib/time.ts'
import type { PrincipalKind } from '../../identity/principal.ts'
import { isForApiKeys } from './errorCodesOfRoute.ts'
import { deadlineOf } from '../response/deadlines.ts'
import type { AnyRoute } from '../route.ts'

/** Terms that OpenAPI has no member for: for the contract diff as members, for readers in words. */

const TOKENS: readonly PrincipalKind[] = ['user', 'workload']

/** The kinds of credential that may call the operation; empty for a public one. */
const credentialsOf = (route: AnyRoute): readonly PrincipalKind[] => {
  if (route.scope === 'none') return []
  const permitted = TOKENS.filter(kind => route.kinds === undefined || route.kinds.includes(kind))
  return isForApiKeys(route) ? [...permitted, 'api_key'] : permitted
}

/** The scopes of which one suffices; empty for a public operation. */
const scopesOf = ({ scope, orScopes = [] }: AnyRoute): readonly string[] =>
  scope === 'none' ? [] : [scope, ...orScopes]

/** Each scope of a token suffices alone. OpenAPI has no scopes of API keys: they are in `x-scopes`. */
export const securityOf = (route: AnyRoute): Record<string, string[]>[] => [
  ...scopesOf(route).map(scope => ({ oauth: [scope] })),
  ...(isForApiKeys(route) ? [{ apiKey: [] }] : []),
]

export const termsOf = (route: AnyRoute) => ({
  'x-scopes': scopesOf(route),
  'x-credentials': credentialsOf(route),
  'x-rate-class': route.rateClass,
  'x-deadline-seconds': deadlineOf(route) / SECOND_MS,
  ...(route.order ? { 'x-order': route.order } : {}),
})

const CREDENTIAL_NAMES: Readonly<Record<PrincipalKind, string>> = {
  user: 'a user’s token',
  workload: 'a workload’s token',
  api_key: 'an API key',
}

const permissionSentence = (route: AnyRoute): string => {
  const scopes = scopesOf(route)
  if (scopes.length === 0) return 'Public: needs no credential.'
  const credentials = credentialsOf(route).map(kind => CREDENTIAL_NAMES[kind])
  return `Permitted with ${credentials.join(' or ')} that has the scope ${scopes.join(' or ')}.`
}

const orderSentence = (order: readonly string[]): string => {
  const keys = order.map(key => (key.startsWith('-') ? `${key.slice(1)} (descending)` : key))
  return `Items are ordered by ${keys.join(', then ')}.`
}

/** The description of an operation: that of its declaration, and its terms in words. */
export const descriptionOf = (route: AnyRoute): string =>
  [
    route.description,
    permissionSentence(route),
    route.ifMatch && 'The header If-Match is required.',
    route.idempotencyKey === 'required' && 'The header Idempotency-Key is required.',
    route.idempotencyKey === 'honoured' && 'An Idempotency-Key makes the request safe to repeat.',
    route.order && orderSentence(route.order),
    `Rate class: ${route.rateClass}. Deadline: ${deadlineOf(route) / SECOND_MS} s.`,
  ]
    .filter(Boolean)
    .join(' ')
