import type { ClientMetadata } from 'oidc-provider'
import { SCOPES } from '../../identity/principal.ts'
import { isLoopback } from './loopback.ts'

/** The page /console, a public client of no tenant, for users of all. A registered client with its id takes its place. */

const CLIENT_ID = 'console'
const PATH = '/console'

/** The addresses of the page: two names of this machine, if the service is on it. */
const redirectUrisOf = (resource: string): readonly string[] => {
  if (!isLoopback(resource)) return [`${resource}${PATH}`]
  return ['localhost', '127.0.0.1'].map(hostname => new URL(PATH, Object.assign(new URL(resource), { hostname })).href)
}

/** The registration; undefined for another id. `resource` is the base URL of the service. */
export const consoleMetadata = (id: string, resource: string): ClientMetadata | undefined =>
  id === CLIENT_ID
    ? {
        client_id: CLIENT_ID,
        client_name: 'Ledger console',
        // Its redirect URIs are compared with their port, unlike those of a native application (RFC 8252, section 7.3).
        application_type: 'web',
        scope: ['openid', ...SCOPES].join(' '),
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        redirect_uris: [...redirectUrisOf(resource)],
        token_endpoint_auth_method: 'none',
      }
    : undefined

type Client = { readonly clientId: string; readonly [member: string]: unknown }

export const isConsole = (client: Client | undefined): boolean =>
  client?.clientId === CLIENT_ID && client['tenant'] === undefined

/** Whether users of the tenant may use the client. */
export const isForTenant = (client: Client | undefined, tenant: string): boolean =>
  client !== undefined && (isConsole(client) || client['tenant'] === tenant)
