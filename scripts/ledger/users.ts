import { Command } from 'commander'
import { addUser, loadUsers, removeUser, setPassword } from '../../src/embedded/issuer/users.ts'
import { issuerDirectory, lineFromStdin, scopesOf, SEEN_WITHIN } from './embeddedIssuer.ts'
import { jsonOption, print, printJson } from './print.ts'
import { printTable } from './table.ts'

type Json = { readonly json: boolean }
type Typed = Json & { readonly passwordStdin: boolean }

const list = async ({ json }: Json): Promise<void> => {
  const users = (await loadUsers(await issuerDirectory())).map(({ username, tenant, scope, password_set_at }) => ({
    username,
    tenant,
    scope,
    password_set_at: password_set_at === undefined ? null : new Date(password_set_at * 1_000).toISOString(),
  }))
  if (json) return printJson({ users })
  const since = (at: string | null): string => (at === null ? 'no password yet' : `password set ${at}`)
  printTable(users.map(user => [user.username, user.tenant, since(user.password_set_at)]))
}

/** A piped-in password is not printed; a generated one is printed once. */
const printPassword = (username: string, password: string, { json, passwordStdin }: Typed): void => {
  const printed = passwordStdin ? {} : { password }
  if (json) return printJson({ username, ...printed })
  print(passwordStdin ? `${username} has the password that was piped in.` : `password of ${username}  ${password}`)
}

const passwordOf = async ({ passwordStdin }: Typed): Promise<string | undefined> =>
  passwordStdin ? lineFromStdin('password') : undefined

const add = async (username: string, options: Typed & { readonly tenant: string; readonly scope: string }) => {
  const user = { username, tenant: options.tenant, scope: scopesOf(options.scope) }
  printPassword(username, await addUser(await issuerDirectory(), user, await passwordOf(options)), options)
}

const changePassword = async (username: string, options: Typed): Promise<void> =>
  printPassword(username, await setPassword(await issuerDirectory(), username, await passwordOf(options)), options)

const remove = async (username: string, { json }: Json): Promise<void> => {
  await removeUser(await issuerDirectory(), username)
  if (json) printJson({ username, removed: true })
  else print(`${username} is removed. Access tokens in this name are good until they expire, 15 minutes at most.`)
}

const withPassword = (command: Command): Command =>
  command
    .option(
      '--password-stdin',
      'read the password, 12 to 256 characters, from stdin; without it one is generated and printed',
      false,
    )
    .addOption(jsonOption('print JSON: {username, password}, with the password only if it was generated'))
    .addHelpText('after', `${SEEN_WITHIN}\nPasswords are stored as scrypt hashes and cannot be shown again.`)

export const usersCommand = new Command('users')
  .description('Lists, registers and removes the users of the embedded issuer.')
  .addCommand(
    new Command('list')
      .description(
        'Lists the users. A fresh data directory has alice and bob of acme and carol of globex, without passwords.',
      )
      .addOption(jsonOption('print JSON: {users: [{username, tenant, scope, password_set_at}]}'))
      .action(list),
  )
  .addCommand(
    withPassword(
      new Command('add')
        .description('Registers a user, and prints the generated password.')
        .argument('<username>', 'unique over all tenants: a-z, 0-9, ., _, @ and -')
        .requiredOption('--tenant <tenant>', 'the tenant that the user belongs to')
        .requiredOption('--scope <scopes>', 'the maximal scope of applications that act for the user'),
    ).action(add),
  )
  .addCommand(
    withPassword(
      new Command('set-password')
        .description('Sets a new password, and ends the sessions and refresh tokens of the user.')
        .argument('<username>', 'the user'),
    ).action(changePassword),
  )
  .addCommand(
    new Command('remove')
      .description('Removes a user. Logins and refresh tokens of the user are refused from then on.')
      .argument('<username>', 'the user')
      .addOption(jsonOption('print JSON: {username, removed}'))
      .addHelpText('after', SEEN_WITHIN)
      .action(remove),
  )
