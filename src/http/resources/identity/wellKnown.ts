import { z } from 'zod'
import { SCOPES } from '../../../identity/principal.ts'
import { PROTECTED_RESOURCE_PATH } from '../../access/challenge.ts'
import { Problem } from '../../problems/problemCatalogue.ts'
import { type AnyRoute, route } from '../../route.ts'

/** Discovery documents for clients: RFC 9728, RFC 8414 and OpenID Connect Discovery. */

const document = z.record(z.string(), z.union([z.string(), z.boolean(), z.array(z.string())]))
const common = { method: 'GET', tag: 'Identity', scope: 'none' } as const
const headers = { 'Cache-Control': 'public, max-age=300' }

const issuerMetadata = (path: string, operationId: string): AnyRoute =>
  route({
    ...common,
    path,
    operationId,
    summary: 'Read the metadata of the embedded issuer; an external issuer publishes its own',
    responses: { 200: { description: 'Authorization server metadata (RFC 8414).', schema: document } },
    errors: ['resource_not_found'],
    handler: async ({ issuer }) => {
      if (issuer.metadata === undefined)
        throw new Problem('resource_not_found', {
          detail: `The authorization server is ${issuer.url}; its metadata is there.`,
        })
      return { status: 200, body: issuer.metadata, headers }
    },
  })

const protectedResource = route({
  ...common,
  path: PROTECTED_RESOURCE_PATH,
  operationId: 'read_protected_resource',
  summary: 'Read the metadata of the protected resource: its issuers and scopes',
  responses: { 200: { description: 'Protected resource metadata (RFC 9728).', schema: document } },
  handler: async ({ issuer, publicUrl }) => ({
    status: 200,
    body: {
      resource: publicUrl,
      authorization_servers: [issuer.url],
      scopes_supported: SCOPES,
      bearer_methods_supported: ['header'],
      resource_name: 'Payment ledger',
      resource_documentation: `${publicUrl}/openapi.json`,
    },
    headers,
  }),
})

const AUTHORIZATION_SERVER = '/.well-known/oauth-authorization-server'
const OPENID_CONFIGURATION = '/.well-known/openid-configuration'
const ISSUER_PATH = '/oauth'

/**
 * RFC 8414 (3.1) puts the well-known part before the issuer's path, OpenID Connect after it: each is served in both
 * places, and the first also without the path, where many clients request it.
 */
export const wellKnownRoutes: readonly AnyRoute[] = [
  issuerMetadata(AUTHORIZATION_SERVER, 'read_issuer'),
  issuerMetadata(`${AUTHORIZATION_SERVER}${ISSUER_PATH}`, 'read_issuer_by_path'),
  issuerMetadata(`${ISSUER_PATH}${AUTHORIZATION_SERVER}`, 'read_issuer_below_path'),
  issuerMetadata(`${OPENID_CONFIGURATION}${ISSUER_PATH}`, 'read_issuer_as_openid_by_path'),
  issuerMetadata(`${ISSUER_PATH}${OPENID_CONFIGURATION}`, 'read_issuer_as_openid'),
  protectedResource,
]
