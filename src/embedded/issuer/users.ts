import { z } from 'zod'
import { DEVELOPMENT_OPERATORS, SCOPES, type Scope } from '../../identity/principal.ts'
import { StartupError } from '../../lib/startupError.ts'
import {
  generatePassword,
  hashPassword,
  PASSWORD_CHARACTERS_MAX,
  PASSWORD_CHARACTERS_MIN,
  passwordHashSchema,
} from './passwords.ts'
import { createRegistry, scopesSchema, tenantSchema } from './registrationFile.ts'

/** A username is unique over all tenants, because it is the `sub` of the user's tokens. */
export const USERNAME = /^[a-z0-9][a-z0-9._@-]{0,62}$/

const userSchema = z.strictObject({
  username: z.string().regex(USERNAME),
  tenant: tenantSchema,
  /** The maximal scope of applications that act for this user. */
  scope: scopesSchema,
  /** Users without a password cannot log in. */
  password: passwordHashSchema.optional(),
  /** Unix seconds. Sessions from before this time are over. */
  password_set_at: z.int().optional(),
})

export type DevUser = z.infer<typeof userSchema>

const allBut = (...without: readonly Scope[]): string => SCOPES.filter(scope => !without.includes(scope)).join(' ')

/** What operators of the installation may do, whatever tenant has it. */
const OF_OPERATORS: readonly Scope[] = ['projections:operate', 'audit:installation']

/** Without passwords: one who enters and pays, one who approves, one of another tenant, one of the demo's, an operator. */
const developmentUsers = (): readonly DevUser[] => [
  {
    username: 'alice',
    tenant: 'acme',
    scope: allBut(
      ...(['invoice:approve', 'payments:settle', 'payments:refund', 'audit:read', 'keys:manage'] as const),
      ...OF_OPERATORS,
    ),
  },
  { username: 'bob', tenant: 'acme', scope: allBut('payments:settle', ...OF_OPERATORS) },
  { username: 'carol', tenant: 'globex', scope: allBut('payments:settle', ...OF_OPERATORS) },
  { username: 'dana', tenant: 'chinook', scope: allBut('payments:settle', ...OF_OPERATORS) },
  { username: 'olga', tenant: DEVELOPMENT_OPERATORS, scope: allBut('payments:settle') },
]

const registry = createRegistry<DevUser>({
  name: 'users',
  entry: userSchema,
  idOf: ({ username }) => username,
  initial: developmentUsers,
})

export const loadUsers = registry.load
export const openUsers = registry.open

const checkPassword = (password: string): string => {
  const { length } = password
  if (length >= PASSWORD_CHARACTERS_MIN && length <= PASSWORD_CHARACTERS_MAX) return password
  throw new StartupError(`A password has ${PASSWORD_CHARACTERS_MIN} to ${PASSWORD_CHARACTERS_MAX} characters.`)
}

const words: Readonly<Record<string, string>> = {
  username: 'A user name is 1 to 63 characters of a-z, 0-9, ., _, @ and -, and begins with a letter or a digit.',
  tenant: 'The tenant is 1 to 63 characters of a-z, 0-9 and -, and does not begin with -.',
  scope: `The scopes are of ${SCOPES.join(', ')}.`,
}

const check = (user: DevUser): DevUser => {
  const parsed = userSchema.safeParse(user)
  if (parsed.success) return parsed.data
  throw new StartupError(words[String(parsed.error.issues[0]?.path[0])] ?? 'This is not a user.')
}

const unknownUser = (username: string): StartupError =>
  new StartupError(`There is no user ${JSON.stringify(username)}: ledger users list shows those that exist.`)

export type NewUser = Pick<DevUser, 'username' | 'tenant' | 'scope'>

const secretOf = async (choice: string | undefined) => {
  const password = choice === undefined ? generatePassword() : checkPassword(choice)
  const password_set_at = Math.floor(Date.now() / 1000)
  return { password, stored: { password: await hashPassword(password), password_set_at } }
}

/** Resolves to the password, which is generated if not given. Throws a StartupError: invalid, or the name is taken. */
export const addUser = async (dataDir: string, user: NewUser, choice?: string): Promise<string> => {
  const { password, stored } = await secretOf(choice)
  await registry.edit(dataDir, users => {
    const checked = check(user)
    if (users.some(({ username }) => username === checked.username))
      throw new StartupError(
        `There is a user ${checked.username} already: ledger users set-password ${checked.username}.`,
      )
    return [...users, { ...checked, ...stored }]
  })
  return password
}

/** Like addUser. Sessions and refresh tokens from before the change end. */
export const setPassword = async (dataDir: string, username: string, choice?: string): Promise<string> => {
  const { password, stored } = await secretOf(choice)
  await registry.edit(dataDir, users => {
    if (!users.some(user => user.username === username)) throw unknownUser(username)
    return users.map(user => (user.username === username ? { ...user, ...stored } : user))
  })
  return password
}

/** Throws a StartupError if there is none. */
export const removeUser = (dataDir: string, username: string): Promise<void> =>
  registry.edit(dataDir, users => {
    if (!users.some(user => user.username === username)) throw unknownUser(username)
    return users.filter(user => user.username !== username)
  })
