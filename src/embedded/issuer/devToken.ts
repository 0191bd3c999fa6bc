import { randomUUID } from 'node:crypto'
import { importJWK, SignJWT } from 'jose'
import { isScope, SCOPES, TENANT_PATTERN } from '../../identity/principal.ts'
import { StartupError } from '../../lib/startupError.ts'
import { USER_LIFETIME_SECONDS, WORKLOAD_LIFETIME_SECONDS } from './lifetimes.ts'
import { loadSigningKey } from './signingKey.ts'

/** The client id in tokens for users of the command line. */
export const CLI_CLIENT = 'ledger-cli'

const SUBJECT = /^[\x21-\x7e]{1,255}$/

export type DevGrant = {
  readonly tenant: string
  readonly subject: string
  readonly scopes: readonly string[]
  /** True for a user who delegated to the command line, false for a workload. */
  readonly user: boolean
  /** Defaults to the maximum: 900 for users, 300 for workloads. */
  readonly lifetimeSeconds?: number
}

type TokenParties = { readonly issuer: string; readonly audience: string }

const check = (holds: boolean, sentence: string): void => {
  if (!holds) throw new StartupError(sentence)
}

const RESERVED_TENANT = 'ledger'

const checkGrant = ({ tenant, subject, scopes, user }: DevGrant): void => {
  check(
    tenant !== RESERVED_TENANT,
    'The tenant "ledger" is reserved for the service. Callers of the tenant OPERATORS_TENANT read its records, those of ' +
      'operators, at GET /installation/audit-records with the scope audit:installation.',
  )
  check(TENANT_PATTERN.test(tenant), 'The tenant must be 1 to 63 characters of a-z, 0-9 and -, and not begin with -.')
  check(SUBJECT.test(subject), 'The subject must be 1 to 255 visible ASCII characters.')
  check(!user || subject !== CLI_CLIENT, `A user cannot be named ${CLI_CLIENT}: that is the client itself.`)
  check(scopes.length > 0, 'At least one scope is needed.')
  for (const scope of scopes)
    check(isScope(scope), `There is no scope ${JSON.stringify(scope)}. The scopes are ${SCOPES.join(', ')}.`)
}

const lifetimeOf = ({ user, lifetimeSeconds }: DevGrant): number => {
  const longest = user ? USER_LIFETIME_SECONDS : WORKLOAD_LIFETIME_SECONDS
  const seconds = lifetimeSeconds ?? longest
  const fits = Number.isInteger(seconds) && seconds >= 1 && seconds <= longest
  check(fits, `The lifetime must be 1 to ${longest} whole seconds.`)
  return seconds
}

/**
 * An RFC 9068 access token for the command line, by the key in the data directory; the issuer need not run. Throws a
 * StartupError that names an invalid member.
 */
export const mintDevToken = async (
  request: TokenParties & DevGrant & { readonly dataDir: string },
): Promise<string> => {
  checkGrant(request)
  const lifetimeSeconds = lifetimeOf(request)
  const key = await loadSigningKey(request.dataDir)
  const issuedAt = Math.floor(Date.now() / 1000)
  const { tenant, subject, scopes, user } = request
  return await new SignJWT({ client_id: user ? CLI_CLIENT : subject, tenant, scope: scopes.join(' ') })
    .setProtectedHeader({ typ: 'at+jwt', alg: key.alg, kid: key.kid })
    .setIssuer(request.issuer)
    .setAudience(request.audience)
    .setSubject(subject)
    .setJti(randomUUID())
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + lifetimeSeconds)
    .sign(await importJWK(key, key.alg))
}
