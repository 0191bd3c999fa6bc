/**
 * The user and the command that run Postgres. Postgres refuses to run as root, so root runs it as the user `postgres`.
 * That user may be unable to enter the folders above the binaries or the data (a clone in `mktemp -d` is open to root
 * only), whose modes are not changed. `setpriv` then gives the process the capability to read and search everywhere. Of
 * the possible ways the one with the fewest rights is taken, found by trying, since modes do not show ACLs or the
 * limits of a container.
 */

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { PostgresBinaries } from './binaries.ts'
import { StartupError } from '../../lib/startupError.ts'

const run = promisify(execFile)

export type Account = { readonly uid: number; readonly gid: number }

export type Launch = {
  /** The owner of the data; undefined if it is the user of this process. */
  readonly account: Account | undefined
  /** The program and arguments that run `program` as this user. */
  command(program: string, args: readonly string[]): readonly [string, readonly string[]]
  readonly spawnOptions: { readonly cwd: string; readonly uid?: number; readonly gid?: number }
}

const USER = 'postgres'
const PROBE_MAX_MS = 10_000
const CWD = '/'

const lookUp = async (): Promise<Account | undefined> => {
  try {
    const [uid, gid] = await Promise.all([run('id', ['-u', USER]), run('id', ['-g', USER])])
    return { uid: Number(uid.stdout), gid: Number(gid.stdout) }
  } catch {
    return undefined
  }
}

const createUser = async (): Promise<Account> => {
  // A concurrent start may have created the user first, so only the result counts.
  const failure = await run('useradd', ['--system', '--user-group', '--no-create-home', USER]).catch(error => error)
  const account = await lookUp()
  if (account !== undefined) return account
  throw new StartupError(
    `Postgres does not run as root and the user ${USER} cannot be created: start as an ordinary user, or set DATABASE_URL.`,
    failure,
  )
}

const plain = (account?: Account): Launch => ({
  account,
  command: (program, args) => [program, args],
  spawnOptions: { cwd: CWD, ...account },
})

/** `--pdeathsig INT` is the fast shutdown of Postgres: it ends with this process even after SIGKILL. */
const setpriv = (account: Account | undefined, capability?: string): Launch => {
  const identity =
    account === undefined ? [] : ['--reuid', `${account.uid}`, '--regid', `${account.gid}`, '--clear-groups']
  // access(2) checks the real user and drops the capability first, unless the fixup is off; initdb relies on it.
  const rights =
    capability === undefined
      ? []
      : [`--inh-caps=+${capability}`, `--ambient-caps=+${capability}`, '--securebits=+no_setuid_fixup']
  const before = [...identity, ...rights, '--pdeathsig', 'INT', '--']
  return {
    account,
    command: (program, args) => ['setpriv', [...before, program, ...args]],
    spawnOptions: { cwd: CWD },
  }
}

const candidates = (account: Account | undefined): readonly Launch[] => [
  setpriv(account),
  ...(account === undefined ? [] : [setpriv(account, 'dac_read_search'), setpriv(account, 'dac_override')]),
  plain(account),
]

const REACHES_ALL = 'cd "$1" && test -r "$2" && test -x "$3" && exec "$3" --version'

const works = async (launch: Launch, binaries: PostgresBinaries, directory: string): Promise<boolean> => {
  const [program, args] = launch.command('/bin/sh', [
    '-c',
    REACHES_ALL,
    'sh',
    directory,
    binaries.share,
    binaries.postgres,
  ])
  try {
    await run(program, [...args], { ...launch.spawnOptions, timeout: PROBE_MAX_MS })
    return true
  } catch {
    return false
  }
}

/** The way to run Postgres that can read binaries and `directory`. Throws a StartupError with instructions without one. */
export const postgresLaunch = async (binaries: PostgresBinaries, directory: string): Promise<Launch> => {
  const account = process.getuid?.() === 0 ? ((await lookUp()) ?? (await createUser())) : undefined
  for (const launch of candidates(account)) if (await works(launch, binaries, directory)) return launch
  if (account === undefined)
    throw new StartupError(`The Postgres in ${binaries.postgres} does not run on this machine.`)
  throw new StartupError(
    `Postgres runs as the user ${USER}, who cannot enter ${directory} or ${binaries.postgres}: ` +
      'install util-linux (setpriv), use folders that every user may enter, or start as an ordinary user.',
  )
}
