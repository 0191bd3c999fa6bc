import { SCOPES } from '../../identity/principal.ts'
import { CLIENT_ASSERTION_ALGORITHMS, CLIENT_AUTH_METHODS, ROUTES } from './endpoints.ts'

/** RFC 8414 metadata, served at `/.well-known/oauth-authorization-server`, also with the issuer's path appended. */
export type IssuerMetadata = Readonly<Record<string, string | boolean | readonly string[]>>

export const describeIssuer = (issuer: string): IssuerMetadata => ({
  issuer,
  authorization_endpoint: `${issuer}${ROUTES.authorization}`,
  token_endpoint: `${issuer}${ROUTES.token}`,
  revocation_endpoint: `${issuer}${ROUTES.revocation}`,
  jwks_uri: `${issuer}${ROUTES.jwks}`,
  scopes_supported: ['openid', ...SCOPES],
  response_types_supported: ['code'],
  response_modes_supported: ['query'],
  grant_types_supported: ['authorization_code', 'refresh_token', 'client_credentials'],
  code_challenge_methods_supported: ['S256'],
  token_endpoint_auth_methods_supported: CLIENT_AUTH_METHODS,
  token_endpoint_auth_signing_alg_values_supported: CLIENT_ASSERTION_ALGORITHMS,
  revocation_endpoint_auth_methods_supported: CLIENT_AUTH_METHODS,
  revocation_endpoint_auth_signing_alg_values_supported: CLIENT_ASSERTION_ALGORITHMS,
  authorization_response_iss_parameter_supported: true,
  subject_types_supported: ['public'],
  id_token_signing_alg_values_supported: ['ES256'],
})
