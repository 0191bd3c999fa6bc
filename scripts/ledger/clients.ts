import { readFile } from 'node:fs/promises'
import { Command } from 'commander'
import {
  addClient,
  type DevClient,
  loadClients,
  newSecret,
  removeClient,
  rotateClientSecret,
} from '../../src/embedded/issuer/clients.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { issuerDirectory, scopesOf, SEEN_WITHIN } from './embeddedIssuer.ts'
import { jsonOption, print, printJson } from './print.ts'
import { printTable } from './table.ts'

type Json = { readonly json: boolean }

const PROOFS = { none: 'public', private_key_jwt: 'key', client_secret: 'secret' } as const

const proofOf = (client: DevClient): keyof typeof PROOFS => {
  if ('public' in client) return 'none'
  return 'jwks' in client ? 'private_key_jwt' : 'client_secret'
}

/** The public members of a client, without its secret. */
const shown = (client: DevClient) => ({
  client_id: client.client_id,
  name: client.name ?? null,
  tenant: client.tenant,
  scope: client.scope,
  redirect_uris: client.redirect_uris ?? [],
  proof: proofOf(client),
  acts_for: client.redirect_uris ? 'users' : 'itself',
})

const list = async ({ json }: Json): Promise<void> => {
  const clients = (await loadClients(await issuerDirectory())).map(shown)
  if (json) return printJson({ clients })
  const cellsOf = ({ client_id, tenant, proof, acts_for, redirect_uris }: ReturnType<typeof shown>) => [
    client_id,
    tenant,
    PROOFS[proof],
    `acts for ${acts_for}`,
    redirect_uris.join(' '),
  ]
  printTable(clients.map(cellsOf))
}

type New = Json & {
  readonly tenant: string
  readonly scope: string
  readonly name?: string
  readonly redirectUri?: readonly string[]
  readonly public: boolean
  readonly jwks?: string
}

const keysIn = async (path: string): Promise<{ keys: Record<string, unknown>[] }> => {
  try {
    return JSON.parse(await readFile(path, 'utf8'))
  } catch (error) {
    throw new StartupError(`${path} is not a file with a key set, {"keys": […]}.`, error)
  }
}

const makeProof = async ({ public: isPublic, jwks }: New) => {
  if (isPublic && jwks !== undefined) throw new StartupError('A client is --public or has --jwks, not both.')
  if (isPublic) return { public: true } as const
  return jwks === undefined ? { client_secret: newSecret() } : { jwks: await keysIn(jwks) }
}

const add = async (client_id: string, options: New): Promise<void> => {
  const { tenant, scope, name, redirectUri } = options
  const proof = await makeProof(options)
  const described = { client_id, tenant, scope: scopesOf(scope), ...(name !== undefined && { name }) }
  const client = { ...described, ...(redirectUri && { redirect_uris: [...redirectUri] }), ...proof } as DevClient
  await addClient(await issuerDirectory(), client)
  const secret = 'client_secret' in proof ? proof.client_secret : undefined
  if (options.json) return printJson({ ...shown(client), ...(secret === undefined ? {} : { client_secret: secret }) })
  print(`${client_id} of ${tenant} is registered.`)
  if (secret !== undefined) print(`secret  ${secret}`)
}

const remove = async (id: string, { json }: Json): Promise<void> => {
  await removeClient(await issuerDirectory(), id)
  if (json) printJson({ client_id: id, removed: true })
  else print(`${id} is removed. Tokens that it has are good until they expire, 15 minutes at most.`)
}

const rotateSecret = async (id: string, { json }: Json): Promise<void> => {
  const secret = await rotateClientSecret(await issuerDirectory(), id)
  if (json) printJson({ client_id: id, client_secret: secret })
  else print(`secret  ${secret}`)
}

const addCommand = new Command('add')
  .description('Registers an application and prints its secret, if it has one.')
  .argument('<id>', 'client_id: letters, digits, dots, hyphens and underscores')
  .requiredOption('--tenant <tenant>', 'the tenant of the application; users of other tenants cannot log in to it')
  .requiredOption('--scope <scopes>', 'the maximal scope of its tokens: "orders:read orders:write"')
  .option('--name <name>', 'the name on the consent page')
  .option(
    '--redirect-uri <uri...>',
    'the exact addresses to which users return; with one, the application acts for users, else for itself',
  )
  .option('--public', 'runs on the devices of its users, and so has no secret', false)
  .option('--jwks <file>', 'a file with its public keys: it authenticates with private_key_jwt instead of a secret')
  .addOption(jsonOption('print JSON: {client_id, tenant, scope, redirect_uris, proof, acts_for, client_secret}'))
  .addHelpText(
    'after',
    `${SEEN_WITHIN}
Examples:
  npm run -s ledger -- clients add web --tenant acme --name "Acme Books" --public \\
    --redirect-uri http://127.0.0.1:4000/callback --scope "orders:read orders:write"
  npm run -s ledger -- clients add importer --tenant acme --scope "orders:write invoices:write"`,
  )
  .action(add)

export const clientsCommand = new Command('clients')
  .description('Lists, registers and removes the applications (OAuth clients) of the embedded issuer.')
  .addCommand(
    new Command('list')
      .description('Lists the applications, without their secrets.')
      .addOption(
        jsonOption('print JSON: {clients: [{client_id, name, tenant, scope, redirect_uris, proof, acts_for}]}'),
      )
      .action(list),
  )
  .addCommand(addCommand)
  .addCommand(
    new Command('remove')
      .description('Removes an application, which then gets no more tokens for itself or its users.')
      .argument('<id>', 'the client_id')
      .addOption(jsonOption('print JSON: {client_id, removed}'))
      .addHelpText('after', SEEN_WITHIN)
      .action(remove),
  )
  .addCommand(
    new Command('rotate-secret')
      .description('Replaces the secret and prints the new one. The old one is refused from then on.')
      .argument('<id>', 'the client_id')
      .addOption(jsonOption('print JSON: {client_id, client_secret}'))
      .addHelpText('after', SEEN_WITHIN)
      .action(rotateSecret),
  )
