import { randomBytes } from 'node:crypto'
import type { ClientMetadata } from 'oidc-provider'
import { z } from 'zod'
import { SCOPES } from '../../identity/principal.ts'
import { StartupError } from '../../lib/startupError.ts'
import { isLoopback, LOOPBACK_HOSTS } from './loopback.ts'
import { createRegistry, scopesSchema, tenantSchema } from './registrationFile.ts'

const SECRET_BYTES = 32
const REDIRECT_URIS_MAX = 20
const REDIRECT_URI_MAX_CHARACTERS = 1_000

/** The tenants for which a fresh data directory has a client and users. */
export const DEFAULT_TENANTS = ['acme', 'globex'] as const

/** Canonical, since it is compared exactly but for a loopback port. Plain http is for this machine only (RFC 8252, 7.3). */
export const isRedirectUri = (text: string): boolean => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.href !== text || text.includes('#') || url.username !== '' || url.password !== '') return false
  return url.protocol === 'https:' || (url.protocol === 'http:' && LOOPBACK_HOSTS.has(url.hostname))
}

const redirectUrisSchema = z
  .array(z.string().max(REDIRECT_URI_MAX_CHARACTERS).refine(isRedirectUri, 'is no redirect URI'))
  .min(1)
  .max(REDIRECT_URIS_MAX)

const fields = {
  client_id: z.string().regex(/^[A-Za-z0-9._-]{1,100}$/),
  /** The name on the consent page; the id if there is none. */
  name: z.string().regex(/^[^\p{C}]{1,80}$/u),
  tenant: tenantSchema,
  scope: scopesSchema,
  redirect_uris: redirectUrisSchema,
  jwks: z.strictObject({ keys: z.array(z.record(z.string(), z.unknown())).min(1) }),
}

const { jwks, redirect_uris } = fields
const common = { client_id: fields.client_id, name: fields.name.optional(), tenant: fields.tenant, scope: fields.scope }

/** By a secret, a key whose public half is registered, or not at all on users' devices. With redirect URIs for users. */
const clientSchema = z.union([
  z.strictObject({ ...common, client_secret: z.string().min(SECRET_BYTES), redirect_uris: redirect_uris.optional() }),
  z.strictObject({ ...common, jwks, redirect_uris: redirect_uris.optional() }),
  z.strictObject({ ...common, public: z.literal(true), redirect_uris }),
])

export type DevClient = z.infer<typeof clientSchema>

export const newSecret = (): string => randomBytes(SECRET_BYTES).toString('base64url')

const workloadClient = (tenant: string): DevClient => ({
  client_id: `dev-${tenant}`,
  client_secret: newSecret(),
  tenant,
  scope: SCOPES.join(' '),
})

/** The path of the page that Swagger UI of the service returns to (http/contract/docsPages.ts). */
const DOCS_REDIRECT_PATH = '/docs/oauth2-redirect.html'

/** The client of the page /docs for the users of a tenant. It runs in the browser, on any port of this machine. */
const docsClient = (tenant: string): DevClient => ({
  client_id: `docs-${tenant}`,
  name: 'The API reference',
  public: true,
  tenant,
  scope: SCOPES.join(' '),
  redirect_uris: ['localhost', '127.0.0.1'].map(host => `http://${host}${DOCS_REDIRECT_PATH}`),
})

const registry = createRegistry<DevClient>({
  name: 'clients',
  entry: clientSchema,
  idOf: ({ client_id }) => client_id,
  initial: () => DEFAULT_TENANTS.flatMap(tenant => [workloadClient(tenant), docsClient(tenant)]),
})

/** The clients of the issuer, created with fresh secrets at first use. Throws a StartupError if they cannot be read. */
export const loadClients = registry.load
export const openClients = registry.open

const WORDS: Readonly<Record<keyof typeof fields, string>> = {
  client_id: 'The id is 1 to 100 letters, digits, dots, hyphens and underscores.',
  name: 'The name is 1 to 80 characters, none of them invisible.',
  tenant: 'The tenant is 1 to 63 characters of a-z, 0-9 and -, and does not begin with -.',
  scope: `The scopes are of ${SCOPES.join(', ')}.`,
  redirect_uris:
    'A redirect URI is https, or http to localhost, 127.0.0.1 or [::1]; whole, as it will be sent, and without #.',
  jwks: 'The key set is {"keys": […]} with at least one public key.',
}

const isField = (name: string): name is keyof typeof fields => Object.hasOwn(fields, name)

/** Throws a StartupError for the first defect of a new client. */
const check = (client: DevClient): DevClient => {
  for (const [name, value] of Object.entries(client))
    if (isField(name) && !fields[name].safeParse(value).success) throw new StartupError(WORDS[name])
  const parsed = clientSchema.safeParse(client)
  if (parsed.success) return parsed.data
  throw new StartupError('A public client acts for users: name the redirect URI that it comes back to.')
}

/** Throws a StartupError if the client is invalid or its id is taken. */
export const addClient = (dataDir: string, client: DevClient): Promise<void> =>
  registry.edit(dataDir, clients => {
    const checked = check(client)
    if (clients.some(({ client_id }) => client_id === checked.client_id))
      throw new StartupError(
        `There is a client ${checked.client_id} already: ledger clients remove ${checked.client_id}.`,
      )
    return [...clients, checked]
  })

const unknownClient = (id: string): StartupError =>
  new StartupError(`There is no client ${JSON.stringify(id)}: ledger clients list shows those that exist.`)

/** Throws a StartupError if there is none. */
export const removeClient = (dataDir: string, id: string): Promise<void> =>
  registry.edit(dataDir, clients => {
    if (!clients.some(({ client_id }) => client_id === id)) throw unknownClient(id)
    return clients.filter(({ client_id }) => client_id !== id)
  })

/** Replaces the secret and resolves to the new one. Throws a StartupError if the client has none. */
export const rotateClientSecret = async (dataDir: string, id: string): Promise<string> => {
  const secret = newSecret()
  await registry.edit(dataDir, clients => {
    const client = clients.find(({ client_id }) => client_id === id)
    if (client === undefined) throw unknownClient(id)
    if (!('client_secret' in client))
      throw new StartupError(`The client ${id} has no secret: it is public, or has a key.`)
    return clients.map(other => (other === client ? { ...client, client_secret: secret } : other))
  })
  return secret
}

const authMethodOf = (client: DevClient): 'none' | 'private_key_jwt' | 'client_secret_basic' => {
  if ('public' in client) return 'none'
  return 'jwks' in client ? 'private_key_jwt' : 'client_secret_basic'
}

/** The registration in the form of the provider. A client acts either for users or for itself. */
export const metadataOf = (client: DevClient): ClientMetadata => {
  const { client_id, name = client_id, tenant, scope, redirect_uris } = client
  return {
    client_id,
    client_name: name,
    tenant,
    // A native application listens on any free port: RFC 8252, section 7.3, ignores the port of a loopback address.
    ...(redirect_uris?.some(isLoopback) ? { application_type: 'native' as const } : {}),
    scope: redirect_uris ? `openid ${scope}` : scope,
    ...('client_secret' in client ? { client_secret: client.client_secret } : {}),
    ...('jwks' in client ? { jwks: client.jwks } : {}),
    grant_types: redirect_uris ? ['authorization_code', 'refresh_token'] : ['client_credentials'],
    response_types: redirect_uris ? ['code'] : [],
    redirect_uris: redirect_uris ?? [],
    token_endpoint_auth_method: authMethodOf(client),
  }
}
