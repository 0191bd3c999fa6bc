import { Command } from 'commander'
import { READ_SCOPES } from '../../src/identity/principal.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import type { ApiKey, ApiKeyWithSecret, NewApiKey } from '../client/src/index.ts'
import { type CallerOptions, keyOf, keyOption, ledgerOf, PAGE_LIMIT, withCaller } from './apiClient.ts'
import { jsonOption, print, printJson, printNotice } from './print.ts'
import { printTable } from './table.ts'

/** It calls the API, because only the service has the pepper, and issuance is authorized and audited in one place. */

const MANAGE = 'keys:manage'

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

const list = async (options: CallerOptions & { readonly state?: ApiKey['state'] }): Promise<void> => {
  const ledger = await ledgerOf(options, [MANAGE])
  const query = { limit: PAGE_LIMIT, state: options.state }
  const keys = await Array.fromAsync(ledger.list('GET /api-keys', { query }))
  if (options.json) return printJson({ items: keys })
  const rows = keys.map(({ id, state, expires_at, scopes, name }) => [id, state, expires_at, scopes.join(' '), name])
  printTable([['id', 'state', 'expires_at', 'scopes', 'name'], ...rows])
}

/** Only the secret goes to stdout, so that it can be piped to a secret store; the other members go to stderr. */
const printSecret = ({ secret, ...key }: ApiKeyWithSecret, { json }: CallerOptions, more: string): void => {
  if (json) return printJson({ ...key, secret })
  print(secret)
  printNotice(`${key.id} is good until ${key.expires_at}. ${more}It is not shown again.`)
}

type Issue = CallerOptions & {
  readonly name: string
  readonly scope: string
  readonly days?: number
  readonly quota?: ReturnType<typeof quotaOf>
}

const issue = async (options: Issue): Promise<void> => {
  const scopes = options.scope.split(/\s+/).filter(Boolean)
  const ledger = await ledgerOf(options, [MANAGE, ...scopes])
  const { name, days: expires_in_days, quota } = options
  // The service refuses scopes that keys cannot have.
  const body = { name, scopes: scopes as NewApiKey['scopes'][number][], expires_in_days, quota }
  const { data } = await ledger.request('POST /api-keys', { body, idempotencyKey: keyOf(options) })
  printSecret(data, options, '')
}

const rotate = async (id: string, options: CallerOptions & { readonly overlap?: number }): Promise<void> => {
  const ledger = await ledgerOf(options, [MANAGE, ...READ_SCOPES])
  const input = { path: { id }, body: { overlap_seconds: options.overlap }, idempotencyKey: keyOf(options) }
  const { data: rotated } = await ledger.request('POST /api-keys/{id}:rotate', input)
  const until = rotated.previous_secret_until
  printSecret(rotated, options, until === null ? 'The one before it has ended. ' : `The one before it ends ${until}. `)
}

const revoke = async (id: string, options: CallerOptions): Promise<void> => {
  const ledger = await ledgerOf(options, [MANAGE])
  await ledger.request('DELETE /api-keys/{id}', { path: { id } })
  if (options.json) printJson({ id, state: 'revoked' })
  else print(`${id} is revoked: within seconds no instance takes it any more.`)
}

const subcommand = (name: string, json: string): Command =>
  withCaller(new Command(name), { scope: MANAGE, tenant: 'the tenant of the keys' }).addOption(jsonOption(json))

export const keysCommand = new Command('keys')
  .description('Lists, issues, rotates and revokes API keys. The service must run.')
  .addCommand(
    subcommand('list', 'print JSON: {items: [{id, name, state, prefix, scopes, expires_at, …}]}')
      .description('Prints the keys of the tenant, newest first, without their secrets.')
      .option('--state <state>', 'only keys in this state: active, revoked or expired')
      .action(list),
  )
  .addCommand(
    subcommand('issue', 'print JSON, the response of POST /api-keys: {id, name, state, scopes, …, secret}')
      .description('Issues a key and prints it on stdout. It cannot be shown again.')
      .requiredOption('--name <name>', 'the purpose of the key')
      .requiredOption('--scope <scopes>', `the scopes of the key, separated by spaces: ${READ_SCOPES.join(' ')}`)
      .option('--days <days>', 'the lifetime in days: 1 to 90; 90 by default', wholeNumber('--days'))
      .option('--quota <requests/seconds>', 'the quota of requests in seconds, such as 10000/86400', quotaOf)
      .addOption(keyOption)
      .action(issue),
  )
  .addCommand(
    subcommand('rotate', 'print JSON, the response of POST /api-keys/{id}:rotate, with the new secret')
      .description('Gives a key a new secret and prints it on stdout. The old secret stays valid for the overlap.')
      .argument('<id>', 'the id of the key: key_…')
      .option(
        '--overlap <seconds>',
        'how long the old secret stays valid, in seconds: 0 to 604800; 86400 by default',
        wholeNumber('--overlap'),
      )
      .addOption(keyOption)
      .action(rotate),
  )
  .addCommand(
    subcommand('revoke', 'print JSON: {id, state}')
      .description('Revokes a key: it is refused by every instance within 5 seconds.')
      .argument('<id>', 'the id of the key: key_…')
      .action(revoke),
  )
