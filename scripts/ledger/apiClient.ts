import { randomUUID } from 'node:crypto'
import { Option } from 'commander'
import { type DevGrant, mintDevToken } from '../../src/embedded/issuer/devToken.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { createLedgerClient, type LedgerClient } from '../client/src/index.ts'
import { renewing } from '../demo/tokens.ts'
import { tokenOf, TOKEN_SETTING, type TokenOptions } from './tokenOption.ts'
import { type Connections, findConnections, howToStart } from './connections.ts'

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
  const connections = await findConnections()
  const { dataDir, audience } = connections.config
  const issuer = embeddedIssuerOf(connections)
  return () => mintDevToken({ dataDir, issuer, audience, ...grant })
}

/** The embedded issuer is at the path /oauth of the API, at localhost or at PUBLIC_URL. */
const isEmbedded = (issuer: string, publicUrl: string): boolean => {
  const { pathname, hostname } = new URL(issuer)
  return pathname.endsWith('/oauth') && ['localhost', new URL(publicUrl).hostname].includes(hostname)
}

/** A signing key alone names no issuer: the service that made it may have gone, or use an external issuer now. */
export const embeddedIssuerOf = ({ config, running }: Pick<Connections, 'config' | 'running'>): string => {
  if (config.issuer !== undefined)
    throw new StartupError(`OIDC_ISSUER is set: get a token from that issuer, and put it into ${TOKEN_SETTING}.`)
  if (running === undefined) throw new StartupError(howToStart(config.dataDir))
  if (!isEmbedded(running.issuer, config.publicUrl ?? running.api))
    throw new StartupError(
      `The service on ${config.dataDir} accepts tokens of ${running.issuer}: get one there, and put it into ${TOKEN_SETTING}.`,
    )
  return running.issuer
}

/** `scopes` are those of a token that is minted for the call. Throws a StartupError if no service is known. */
export const ledgerOf = async (options: CallerOptions, scopes: readonly string[]): Promise<LedgerClient> => {
  const { config, addresses } = await findConnections()
  const { api } = addresses
  if (api === null) throw new StartupError(howToStart(config.dataDir))
  return createLedgerClient({ baseUrl: api, token: await tokensOf(options, scopes), retry: RETRIES })
}
