import { text } from 'node:stream/consumers'
import { StartupError } from '../../src/startupError.ts'
import { findConnections } from './connections.ts'

/** What the commands about the embedded issuer share. */

/** The data directory whose issuer is meant. Throws a StartupError when an outside issuer has the users and the clients. */
export const issuerDirectory = async (): Promise<string> => {
  const { config } = await findConnections()
  if (config.issuer === undefined) return config.dataDir
  throw new StartupError(
    `OIDC_ISSUER is ${config.issuer}, which keeps its own: this command is for the embedded issuer.`,
  )
}

/** `--scope "a b"` as it is stored: each once, in the order that it was given. */
export const scopesOf = (given: string): string => [...new Set(given.split(/\s+/).filter(Boolean))].join(' ')

/** The first line of what is piped in: a secret on the command line would be seen by everybody on the machine. */
export const lineFromStdin = async (what: 'password' | 'token'): Promise<string> => {
  if (process.stdin.isTTY)
    throw new StartupError(`Pipe the ${what} in: printf %s "$${what.toUpperCase()}" | npm run -s ledger -- …`)
  return (await text(process.stdin)).split(/\r?\n/, 1)[0] ?? ''
}

export const SEEN_WITHIN = '\nThe service need not run; one that does sees the change within seconds.'
