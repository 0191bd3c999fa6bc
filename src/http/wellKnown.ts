import { z } from 'zod'
import { SCOPES } from '../identity/principal.ts'
import { Problem } from './problem.ts'
import { type AnyRoute, route } from './route.ts'

/** Where a client finds out how to get a token: RFC 8414 and RFC 9728. */

const document = z.record(z.string(), z.union([z.string(), z.boolean(), z.array(z.string())]))
const common = { method: 'GET', tag: 'Identity', scope: 'none', rateClass: 'default' } as const
const headers = { 'Cache-Control': 'public, max-age=300' }

// RFC 8414 puts the issuer's path behind the well-known one; many clients ask without it.
const issuerMetadata = (path: string, operationId: string): AnyRoute =>
  route({
    ...common,
    path,
    operationId,
    summary: 'The embedded issuer; an outside one publishes its own',
    responses: { 200: { description: 'Authorization server metadata.', schema: document } },
    errors: ['resource_not_found'],
    handle: async ({ issuer }) => {
      if (issuer.metadata === undefined) throw new Problem('resource_not_found', { detail: `See ${issuer.url}.` })
      return { status: 200, body: issuer.metadata, headers }
    },
  })

const protectedResource = route({
  ...common,
  path: '/.well-known/oauth-protected-resource',
  operationId: 'read_protected_resource',
  summary: 'Which issuer this service believes, and the scopes there are',
  responses: { 200: { description: 'Protected resource metadata.', schema: document } },
  errors: [],
  handle: async ({ issuer, audience }) => ({
    status: 200,
    body: {
      resource: audience,
      authorization_servers: [issuer.url],
      scopes_supported: SCOPES,
      bearer_methods_supported: ['header'],
    },
    headers,
  }),
})

export const wellKnownRoutes: readonly AnyRoute[] = [
  issuerMetadata('/.well-known/oauth-authorization-server', 'read_issuer'),
  issuerMetadata('/.well-known/oauth-authorization-server/oauth', 'read_issuer_by_path'),
  protectedResource,
]
