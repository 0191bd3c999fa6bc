/**
 * The issuer's paths and the ways in which clients authenticate, apart from oidc-provider, which is loaded when it is
 * used.
 */

/** Below the issuer's path. */
export const ROUTES = { authorization: '/auth', token: '/token', jwks: '/jwks', revocation: '/revoke' } as const
export const INTERACTION_ROUTE = '/interaction'

export const CLIENT_AUTH_METHODS = ['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'none'] as const
export const CLIENT_ASSERTION_ALGORITHMS = ['ES256', 'RS256'] as const
