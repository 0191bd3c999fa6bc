import type { JsonMembers } from './compactToken.ts'
import { isScope, type Principal, TENANT_PATTERN } from './principal.ts'
import type { TokenFault } from './credentialRefusals.ts'

/** The permitted difference between the clocks of issuer and service. */
export const LEEWAY_SECONDS = 30
export const MAX_WORKLOAD_LIFETIME_SECONDS = 300
export const MAX_USER_LIFETIME_SECONDS = 900

const MAX_NAME_CHARACTERS = 255
const MAX_SCOPE_CHARACTERS = 2048
const MAX_AUDIENCES = 16

/** Visible ASCII: invisible characters must not distinguish two names. */
const NAME = /^[\x21-\x7e]+$/
/** RFC 6749, section 3.3: tokens of visible ASCII but `"` and `\`, with single spaces between them. */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/

/** The claim by which an issuer marks tokens of the client credentials grant. */
export type WorkloadClaim = { readonly name: string; readonly value: string }

export type Expected = {
  readonly issuer: string
  readonly audience: string
  /** Without it a workload is recognized by RFC 9068: its subject is its client. */
  readonly workloadClaim?: WorkloadClaim
}

/** The claims that are used once the signature is verified. Times are Unix seconds. */
export type Claims = {
  readonly principal: Principal
  /** The names by which the token can be revoked; external issuers have no `grant`. */
  readonly tokenId: string
  readonly grant: string | undefined
  readonly issuedAt: number
  readonly expiresAt: number
  readonly notBefore: number
}

const isText = (value: unknown, pattern: RegExp, maxCharacters: number): value is string =>
  typeof value === 'string' && value.length <= maxCharacters && pattern.test(value)

const isName = (value: unknown): value is string => isText(value, NAME, MAX_NAME_CHARACTERS)

/** A time in whole seconds. Excludes strings, and 1e400, which JSON parses as Infinity. */
const isSeconds = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) > 0

const includesAudience = (aud: unknown, audience: string): boolean => {
  if (typeof aud === 'string') return aud === audience
  if (!Array.isArray(aud) || aud.length > MAX_AUDIENCES) return false
  return aud.every(entry => typeof entry === 'string') && aud.includes(audience)
}

/**
 * With client credentials the subject is the client (RFC 9068, 2.2). Not every issuer keeps to that, and users may
 * choose their subject: a configured claim decides alone.
 */
const isWorkload = (claims: JsonMembers, claim: WorkloadClaim | undefined): boolean => {
  if (claim === undefined) return claims['sub'] === claims['client_id']
  return Object.hasOwn(claims, claim.name) && claims[claim.name] === claim.value
}

const readPrincipal = (claims: JsonMembers, claim: WorkloadClaim | undefined): Principal | TokenFault => {
  const { sub, client_id, jti, tenant, scope } = claims
  if (!isName(sub)) return 'sub_malformed'
  if (!isName(client_id)) return 'client_id_malformed'
  if (!isName(jti)) return 'jti_malformed'
  if (typeof tenant !== 'string' || !TENANT_PATTERN.test(tenant)) return 'tenant_malformed'
  if (!isText(scope, SCOPE, MAX_SCOPE_CHARACTERS)) return 'scope_malformed'
  const scopes = new Set(scope.split(' ').filter(isScope))
  return { tenant, subject: sub, client: client_id, scopes, kind: isWorkload(claims, claim) ? 'workload' : 'user' }
}

const lifetimeFits = (kind: Principal['kind'], seconds: number): boolean =>
  seconds > 0 && seconds <= (kind === 'user' ? MAX_USER_LIFETIME_SECONDS : MAX_WORKLOAD_LIFETIME_SECONDS)

/** All but the times. Unknown scopes are dropped, since they grant nothing. */
export const readClaims = (claims: JsonMembers, expected: Expected): Claims | TokenFault => {
  const { iss, aud, exp, iat, nbf, cnf, jti, grant } = claims
  if (iss !== expected.issuer) return 'iss_mismatch'
  if (!includesAudience(aud, expected.audience)) return 'aud_mismatch'
  // A sender-constrained token must not be accepted as a bearer token, and proof of possession is not supported.
  if (cnf !== undefined) return 'sender_constrained'
  const principal = readPrincipal(claims, expected.workloadClaim)
  if (typeof principal === 'string') return principal
  if (!isSeconds(exp)) return 'exp_malformed'
  if (!isSeconds(iat)) return 'iat_malformed'
  // Some issuers write zero for "at once".
  if (nbf !== undefined && nbf !== 0 && !isSeconds(nbf)) return 'nbf_malformed'
  if (!lifetimeFits(principal.kind, exp - iat)) return 'lifetime_not_allowed'
  const revocable = { tokenId: String(jti), grant: isName(grant) ? grant : undefined }
  return { principal, ...revocable, issuedAt: iat, expiresAt: exp, notBefore: nbf ?? iat }
}

/** `expired` comes last, so it is reported for otherwise valid tokens only. */
export const faultAt = (claims: Claims, nowSeconds: number): TokenFault | undefined => {
  if (claims.issuedAt > nowSeconds + LEEWAY_SECONDS) return 'iat_in_future'
  if (claims.notBefore > nowSeconds + LEEWAY_SECONDS) return 'not_yet_valid'
  return nowSeconds >= claims.expiresAt + LEEWAY_SECONDS ? 'expired' : undefined
}
