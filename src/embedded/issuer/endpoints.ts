/** Paths and client authentication, apart from oidc-provider, which is loaded when it is used. */

/** Below the issuer's path. */
export const ROUTES = { authorization: '/auth', token: '/token', jwks: '/jwks', revocation: '/revoke' } as const
export const INTERACTION_ROUTE = '/interaction'

export const CLIENT_AUTH_METHODS = ['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'none'] as const
export const CLIENT_ASSERTION_ALGORITHMS = ['ES256', 'RS256'] as const

type Target = { readonly method?: string | undefined; readonly url?: string | undefined }

export const pathOf = ({ url = '' }: Target): string => url.split('?', 1)[0] ?? ''

const RESUME = /^\/auth\/[A-Za-z0-9_-]{1,64}$/
const INTERACTION = /^\/interaction\/([A-Za-z0-9_-]{1,64})(?:\/(login|consent|deny))?$/

/** The methods of the enabled paths; undefined for others. The provider has more routes than the contract. */
export const methodsOf = (path: string): readonly string[] | undefined => {
  // OPTIONS is the CORS preflight of browser applications.
  if (path === ROUTES.token || path === ROUTES.revocation) return ['POST', 'OPTIONS']
  if (path === ROUTES.jwks) return ['GET', 'HEAD']
  return path === ROUTES.authorization || RESUME.test(path) ? ['GET'] : undefined
}

/** The login that a page or a posted form is a step of; undefined for other requests. A form has an action. */
export const interactionOf = (request: Target): { readonly uid: string; readonly action?: string } | undefined => {
  const [, uid, action] = INTERACTION.exec(pathOf(request)) ?? []
  if (uid === undefined) return undefined
  if (action === undefined) return request.method === 'GET' || request.method === 'HEAD' ? { uid } : undefined
  return request.method === 'POST' ? { uid, action } : undefined
}
