import { randomUUID } from 'node:crypto'
import { userInfo } from 'node:os'
import { type Command, Option } from 'commander'
import { type DevGrant, mintDevToken } from '../../src/embedded/issuer/devToken.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { secretIn } from '../../src/settings/secretFiles.ts'
import { createLedgerClient, type LedgerClient } from '../client/src/index.ts'
import { renewing } from '../demo/tokens.ts'
import { lineFromStdin } from './embeddedIssuer.ts'
import { type Connections, findConnections, howToStart } from './connections.ts'

/** The environment variable of the token, since every user of the machine can read a command line. */
export const TOKEN_SETTING = 'LEDGER_TOKEN'

export type CallerOptions = {
  readonly token?: string
  readonly tokenStdin?: boolean
  readonly tenant?: string
  readonly subject: string
  readonly idempotencyKey?: string
  readonly json: boolean
}

/** Adds the options of every command that calls the API. `scope` is the scope that the token needs. */
export const withCaller = (
  command: Command,
  { scope, tenant, subject = 'the subject in the audit record' }: { scope: string; tenant: string; subject?: string },
): Command =>
  command
    .option('--tenant <tenant>', tenant)
    .option('--subject <subject>', subject, userInfo().username)
    .option(
      '--token-stdin',
      `read an access token with the scope ${scope} from stdin, instead of --tenant and --subject; or put it into ` +
        TOKEN_SETTING,
    )
    // Known but refused, so that the error can say what to do instead.
    .addOption(new Option('--token <token>').hideHelp())

/** The option of commands that would create another resource when they are repeated after a lost answer. */
export const keyOption = new Option(
  '--idempotency-key <key>',
  'repeat a command whose answer was lost, with the key that its message names: it takes effect once',
)
export const keyOf = ({ idempotencyKey = randomUUID() }: CallerOptions): string => idempotencyKey

const RETRIES = { deadlineMs: 30_000 }
/** Lists are read in the longest pages. */
export const PAGE_LIMIT = 100

/** The caller's own token, from stdin or from the environment; undefined if there is none. */
const tokenOf = async ({ token, tokenStdin }: Omit<CallerOptions, 'json'>): Promise<string | undefined> => {
  if (token !== undefined)
    throw new StartupError(
      `Everyone on this machine can read a command line: put the token into ${TOKEN_SETTING}, or pipe it in with ` +
        '--token-stdin. Treat the token that you passed as exposed.',
    )
  const own = tokenStdin === true ? await lineFromStdin('token') : secretIn(process.env, TOKEN_SETTING)
  return own || undefined
}

/** The own token, or tokens of the embedded issuer, renewed as needed. Throws a StartupError without either. */
export const tokensOf = async (
  options: Omit<CallerOptions, 'json'>,
  scopes: readonly string[],
): Promise<() => Promise<string>> => {
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
