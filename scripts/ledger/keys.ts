import { userInfo } from 'node:os'
import { Command } from 'commander'
import { z } from 'zod'
import { READ_SCOPES } from '../../src/identity/principal.ts'
import { StartupError } from '../../src/startupError.ts'
import { type ApiCaller, type CallerOptions, callerOf } from './apiClient.ts'
import { tokenOptions } from './tokenOption.ts'
import { print, printJson, printNotice } from './print.ts'
import { aligned } from './table.ts'

/**
 * `keys`: listing, issuing, rotation and revocation of API keys. It calls the API, because only the service has the
 * pepper, and because issuance is authorized and audited in one place.
 */

const keySchema = z.looseObject({
  id: z.string(),
  name: z.string(),
  state: z.string(),
  prefix: z.string(),
  scopes: z.array(z.string()),
  expires_at: z.string(),
  rotated_at: z.string().nullable(),
  previous_secret_until: z.string().nullable(),
})
type Key = z.infer<typeof keySchema>
const withSecretSchema = keySchema.extend({ secret: z.string() })
type IssuedKey = z.infer<typeof withSecretSchema>
const pageSchema = z.object({
  items: z.array(keySchema),
  page: z.looseObject({ next_cursor: z.string().nullable() }),
})

type Output = CallerOptions & { readonly json: boolean }

const MANAGE = 'keys:manage'
const PAGE_LIMIT = 100

const wholeNumber = (name: string) => (text: string) => {
  if (!/^\d{1,9}$/.test(text)) throw new StartupError(`${name} must be a whole number.`)
  return Number(text)
}

/** Parses `10000/86400`: requests per seconds. */
const quotaOf = (text: string) => {
  const [, requests, seconds] = /^(\d{1,10})\/(\d{1,7})$/.exec(text) ?? []
  if (seconds === undefined) throw new StartupError('--quota is written requests/seconds: 10000/86400.')
  return { requests: Number(requests), window_seconds: Number(seconds) }
}

const allKeys = async function* (call: ApiCaller, state: string | undefined): AsyncGenerator<Key> {
  const path = `/api-keys?limit=${PAGE_LIMIT}${state === undefined ? '' : `&state=${encodeURIComponent(state)}`}`
  let cursor: string | null = ''
  while (cursor !== null) {
    const page = pageSchema.parse(await call('GET', cursor === '' ? path : `${path}&cursor=${cursor}`))
    yield* page.items
    cursor = page.page.next_cursor
  }
}

const list = async (options: Output & { readonly state?: string }): Promise<void> => {
  const call = await callerOf(options, [MANAGE])
  const keys: Key[] = []
  for await (const key of allKeys(call, options.state)) keys.push(key)
  if (options.json) return printJson({ items: keys })
  const rows = keys.map(({ id, state, expires_at, scopes, name }) => [id, state, expires_at, scopes.join(' '), name])
  for (const line of aligned([['id', 'state', 'expires_at', 'scopes', 'name'], ...rows])) print(line)
}

/** Only the secret goes to stdout, so that it can be piped to a secret store; the other members go to stderr. */
const printSecret = ({ secret, ...key }: IssuedKey, { json }: Output, more: string): void => {
  if (json) return printJson({ ...key, secret })
  print(secret)
  printNotice(`${key.id} is good until ${key.expires_at}. ${more}It is not shown again.`)
}

type Issue = Output & {
  readonly name: string
  readonly scope: string
  readonly days?: number
  readonly quota?: ReturnType<typeof quotaOf>
}

const issue = async (options: Issue): Promise<void> => {
  const scopes = options.scope.split(/\s+/).filter(Boolean)
  const call = await callerOf(options, [MANAGE, ...scopes])
  const { name, days: expires_in_days, quota } = options
  const body = {
    name,
    scopes,
    ...(expires_in_days === undefined ? {} : { expires_in_days }),
    ...(quota ? { quota } : {}),
  }
  printSecret(withSecretSchema.parse(await call('POST', '/api-keys', { body })), options, '')
}

const rotate = async (id: string, options: Output & { readonly overlap?: number }): Promise<void> => {
  const call = await callerOf(options, [MANAGE, ...READ_SCOPES])
  const body = options.overlap === undefined ? {} : { overlap_seconds: options.overlap }
  const rotated = withSecretSchema.parse(await call('POST', `/api-keys/${encodeURIComponent(id)}:rotate`, { body }))
  const until = rotated.previous_secret_until
  printSecret(rotated, options, until === null ? 'The one before it has ended. ' : `The one before it ends ${until}. `)
}

const revoke = async (id: string, options: Output): Promise<void> => {
  const call = await callerOf(options, [MANAGE])
  await call('DELETE', `/api-keys/${encodeURIComponent(id)}`)
  if (options.json) printJson({ id, state: 'revoked' })
  else print(`${id} is revoked: within seconds no instance takes it any more.`)
}

const [stdin, refused] = tokenOptions(MANAGE)

const withCaller = (command: Command, json: string): Command =>
  command
    .option('--tenant <tenant>', 'the tenant whose keys they are')
    .option('--subject <subject>', 'who asks, for the record', userInfo().username)
    .option('--json', json, false)
    .addOption(stdin)
    .addOption(refused)

export const keysCommand = new Command('keys')
  .description('API keys: listed, issued, rotated, revoked. The service must run.')
  .addCommand(
    withCaller(new Command('list'), '{items: [{id, name, state, prefix, scopes, expires_at, …}]}')
      .description('Prints the keys of the tenant, newest first, without their secrets.')
      .option('--state <state>', 'active, revoked or expired')
      .action(list),
  )
  .addCommand(
    withCaller(new Command('issue'), 'the key as POST /api-keys answers it: {id, name, state, scopes, …, secret}')
      .description('Issues a key and prints it, alone, on stdout. It is shown once.')
      .requiredOption('--name <name>', 'what it is for')
      .requiredOption('--scope <scopes>', `what it may read, separated by spaces: ${READ_SCOPES.join(' ')}`)
      .option('--days <days>', 'how long it is good for: 1 to 90, 90 unless said otherwise', wholeNumber('--days'))
      .option('--quota <requests/seconds>', 'how often it may be used: 10000/86400', quotaOf)
      .action(issue),
  )
  .addCommand(
    withCaller(new Command('rotate'), 'the key as POST /api-keys/{id}:rotate answers it, with the new secret')
      .description('Gives a key a new secret and prints it, alone, on stdout. The one before it goes on for a while.')
      .argument('<id>', 'of the key: key_…')
      .option('--overlap <seconds>', 'for how long: 0 to 604800, 86400 unless said otherwise', wholeNumber('--overlap'))
      .action(rotate),
  )
  .addCommand(
    withCaller(new Command('revoke'), '{id, state}')
      .description('Revokes a key: within seconds nobody gets in with it.')
      .argument('<id>', 'of the key: key_…')
      .action(revoke),
  )
