import { type ErrorCode, PROBLEMS, type Problem, statusOf } from '../problems/problemCatalogue.ts'

/** The header `WWW-Authenticate` of RFC 6750, section 3, with `resource_metadata` of RFC 9728, section 5.1. */

export const PROTECTED_RESOURCE_PATH = '/.well-known/oauth-protected-resource'

type BearerError = 'invalid_token' | 'insufficient_scope'

/** RFC 6750, section 3.1: no error code for a request without a credential. */
const errorOf = (code: ErrorCode): BearerError | undefined => {
  if (code === 'insufficient_scope') return 'insufficient_scope'
  return statusOf(code) === 401 && code !== 'unauthenticated' ? 'invalid_token' : undefined
}

/** The header's value for this problem; undefined for problems that another credential would not solve. */
export const challengeOf = ({ code, extras }: Problem, publicUrl: string): string | undefined => {
  const error = errorOf(code)
  if (error === undefined && statusOf(code) !== 401) return undefined
  const parameters = {
    resource_metadata: `${publicUrl}${PROTECTED_RESOURCE_PATH}`,
    error,
    error_description: error && PROBLEMS[code].title,
    scope: error === 'insufficient_scope' ? extras.scopes?.join(' ') : undefined,
  }
  const present = Object.entries(parameters).filter(([, value]) => value !== undefined)
  return `Bearer ${present.map(([name, value]) => `${name}="${value}"`).join(', ')}`
}
