import { Option } from 'commander'
import { secretIn } from '../../src/settings/secretFiles.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { lineFromStdin } from './embeddedIssuer.ts'

/** The options that give a command the caller's own token. */

/** The environment variable of the token, since every user of the machine can read a command line. */
export const TOKEN_SETTING = 'LEDGER_TOKEN'

export type TokenOptions = { readonly token?: string; readonly tokenStdin?: boolean }

/** The caller's own token, from stdin or from the environment; undefined if there is none. */
export const tokenOf = async ({ token, tokenStdin }: TokenOptions): Promise<string | undefined> => {
  if (token !== undefined)
    throw new StartupError(
      `Everyone on this machine can read a command line: put the token into ${TOKEN_SETTING}, or pipe it in with ` +
        '--token-stdin. Treat the token that you passed as exposed.',
    )
  const own = tokenStdin === true ? await lineFromStdin('token') : secretIn(process.env, TOKEN_SETTING)
  return own || undefined
}

/** Options of every command that calls the API. `scope` is the scope that the token needs. */
export const tokenOptions = (scope: string): readonly [Option, Option] => [
  new Option(
    '--token-stdin',
    `read an access token with the scope ${scope} from stdin, instead of --tenant and --subject; or put it into ` +
      TOKEN_SETTING,
  ),
  // Known but refused, so that the error can say what to do instead.
  new Option('--token <token>').hideHelp(),
]
