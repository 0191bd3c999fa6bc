import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { SCOPES, TENANT_PATTERN } from '../../identity/principal.ts'
import { Refusal } from '../refusal.ts'
import { issuerFolder, readOrCreatePrivate } from './privateFile.ts'

const FILE_NAME = 'clients.json'
const SECRET_BYTES = 32

/** The tenants that a fresh data directory has a client for; more are added by editing the file. */
export const DEFAULT_TENANTS = ['acme', 'globex'] as const

const scopesSchema = z
  .string()
  .refine(text => text.split(' ').every(scope => SCOPES.some(known => known === scope)), 'names an unknown scope')

const common = {
  client_id: z.string().regex(/^[A-Za-z0-9._-]{1,100}$/),
  tenant: z.string().regex(TENANT_PATTERN),
  scope: scopesSchema,
}

/** A client proves itself with a secret, or with a key of its own of which only the public half is registered here. */
const clientSchema = z.union([
  z.strictObject({ ...common, client_secret: z.string().min(SECRET_BYTES) }),
  z.strictObject({ ...common, jwks: z.strictObject({ keys: z.array(z.record(z.string(), z.unknown())).min(1) }) }),
])

const clientsSchema = z.strictObject({ clients: z.array(clientSchema) })

export type DevClient = z.infer<typeof clientSchema>

const workloadClient = (tenant: string): DevClient => ({
  client_id: `dev-${tenant}`,
  client_secret: randomBytes(SECRET_BYTES).toString('base64url'),
  tenant,
  scope: SCOPES.join(' '),
})

const generate = async (): Promise<string> =>
  `${JSON.stringify({ clients: DEFAULT_TENANTS.map(workloadClient) }, undefined, 2)}\n`

const parse = (text: string): readonly DevClient[] => {
  try {
    return clientsSchema.parse(JSON.parse(text)).clients
  } catch (error) {
    // Of zod only the paths are told: the values may be secrets.
    const places = error instanceof z.ZodError ? error.issues.map(issue => issue.path.join('.')).join(', ') : 'JSON'
    throw new Refusal(`The data directory's issuer/${FILE_NAME} is not a list of clients (${places}).`)
  }
}

/** The clients of the dev issuer, made with fresh secrets at first use. Throws a Refusal when they cannot be had. */
export const loadClients = async (dataDir: string): Promise<readonly DevClient[]> =>
  parse(await readOrCreatePrivate(issuerFolder(dataDir), FILE_NAME, generate))
