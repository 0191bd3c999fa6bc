import { randomUUID } from 'node:crypto'
import { Option } from 'commander'
import { type DevGrant, mintDevToken } from '../../src/embedded/issuer/devToken.ts'
import { hasSigningKey } from '../../src/embedded/issuer/signingKey.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { createLedgerClient, type LedgerClient } from '../client/src/index.ts'
import { renewing } from '../demo/tokens.ts'
import { tokenOf, TOKEN_SETTING, type TokenOptions } from './tokenOption.ts'
import { findConnections, howToStart } from './connections.ts'

/** Requests of the command line to the API. */

export type CallerOptions = TokenOptions & { readonly tenant?: string; readonly subject: string }
export type KeyedOptions = { readonly idempotencyKey?: string }

/** The option of commands that would create another resource when they are repeated after a lost answer. */
export const keyOption = new Option(
  '--idempotency-key <key>',
  'repeat a command whose answer was lost, with the key that its message names: it takes effect once',
)
/** The given key, or a new one. */
export const keyOf = ({ idempotencyKey = randomUUID() }: KeyedOptions): string => idempotencyKey

const RETRIES = { deadlineMs: 30_000 }
/** Lists are read in the longest pages. */
export const PAGE_LIMIT = 100

/**
 * The caller's own token, or short-lived ones of the embedded issuer, renewed as needed. Throws a StartupError if
 * neither is possible.
 */
export const tokensOf = async (options: CallerOptions, scopes: readonly string[]): Promise<() => Promise<string>> => {
  const { tenant, subject } = options
  const token = await tokenOf(options)
  if (token !== undefined) return async () => token
  if (tenant === undefined)
    throw new StartupError(`Name the tenant with --tenant, or put a token of your own into ${TOKEN_SETTING}.`)
  return renewing(await embeddedIssuerFor({ tenant, subject, scopes: [...new Set(scopes)], user: false }))
}

/** Mints tokens of the embedded issuer. Throws a StartupError where no service would accept them. */
export const embeddedIssuerFor = async (grant: DevGrant): Promise<() => Promise<string>> => {
  const { config, running } = await findConnections()
  const { dataDir, audience } = config
  if (config.issuer !== undefined)
    throw new StartupError(`OIDC_ISSUER is set: get a token from that issuer, and put it into ${TOKEN_SETTING}.`)
  if (!(await hasSigningKey(dataDir)))
    throw new StartupError(
      `No embedded issuer has run on ${dataDir}. Start the service, or name its directory by LEDGER_DATA_DIR.`,
    )
  const issuer = running?.issuer ?? `http://localhost:${config.port}/oauth`
  return () => mintDevToken({ dataDir, issuer, audience, ...grant })
}

/** `scopes` are those of a token that is minted for the call. Throws a StartupError if no service is known. */
export const ledgerOf = async (options: CallerOptions, scopes: readonly string[]): Promise<LedgerClient> => {
  const { config, addresses } = await findConnections()
  const { api } = addresses
  if (api === null) throw new StartupError(howToStart(config.dataDir))
  return createLedgerClient({ baseUrl: api, token: await tokensOf(options, scopes), retry: RETRIES })
}
