import { text } from 'node:stream/consumers'
import { StartupError } from '../../src/lib/startupError.ts'
import { findConnections } from './connections.ts'

/** The data directory of the embedded issuer. Throws a StartupError if OIDC_ISSUER names an external one. */
export const issuerDirectory = async (): Promise<string> => {
  const { config } = await findConnections()
  if (config.issuer === undefined) return config.dataDir
  throw new StartupError(
    `OIDC_ISSUER is ${config.issuer}, which keeps its own: this command works with the embedded issuer only.`,
  )
}

/** `--scope "a b"` in its stored form: without duplicates, in the given order. */
export const scopesOf = (list: string): string => [...new Set(list.split(/\s+/).filter(Boolean))].join(' ')

/** The first line of stdin. Secrets are not taken from the command line, which every user of the machine can read. */
export const lineFromStdin = async (what: 'password' | 'token'): Promise<string> => {
  if (process.stdin.isTTY)
    throw new StartupError(`Pipe the ${what} in: printf %s "$${what.toUpperCase()}" | npm run -s ledger -- …`)
  return (await text(process.stdin)).split(/\r?\n/, 1)[0] ?? ''
}

export const SEEN_WITHIN = '\nThe service does not have to run; a running service applies the change within seconds.'
