import { hash } from 'node:crypto'
import { setTimeout as timeout } from 'node:timers/promises'
import jwt from 'jsonwebtoken'
import { LRUCache } from 'lru-cache'
import { type Claims, faultAt, LEEWAY_SECONDS, readClaims, type WorkloadClaim } from './claims.ts'
import { readCompactToken, type TokenHeader } from './compactToken.ts'
import { type FetchJwks, fetchJwksFrom } from './fetchJwks.ts'
import { flawOf } from './keySetFlaws.ts'
import { openKeySet, type VerificationKey } from './keySetCache.ts'
import type { Principal } from './principal.ts'
import { type Refused, refuse, type TokenFault } from './credentialRefusals.ts'
import type { Revocations } from './revocations.ts'
import type { World } from '../ports.ts'
import { StartupError } from '../lib/startupError.ts'

const MAX_CACHED_TOKENS = 10_000
/** The cache is limited by the length of the tokens too: the claims in an entry are at most as long as their token. */
const CACHED_CHARACTERS_MAX = 16 * 1024 * 1024

export type TokenVerifierOptions = {
  /** Compared with `iss` character by character. */
  readonly issuer: string
  /** Must be among the token's audiences. */
  readonly audience: string
  /** Marks tokens of workloads; by default those whose subject is their client. */
  readonly workloadClaim?: WorkloadClaim
  /** Reads the issuer's JWK set; by default over HTTP, by the issuer's metadata. */
  readonly fetchJwks?: FetchJwks
  /** Called for each valid token; without it a token is valid until it expires. Must not reject. */
  readonly isRevoked?: Revocations['isRevoked']
  /** Unix milliseconds. */
  readonly now?: () => number
  /** A monotonic clock in milliseconds, for the age of keys. */
  readonly monotonicNow?: () => number
  /** Waits by that clock; by default without keeping the process alive. */
  readonly sleep?: World['sleep']
  /** Called each time that the key set could not be read. */
  readonly onKeysUnreachable?: (error: unknown) => void
}

export type TokenVerifier = {
  /** The caller, or why the token is refused; never rejects. `beforeWork` precedes the verification of an uncached token. */
  verify(token: string | undefined, beforeWork?: () => Promise<unknown>): Promise<Principal | Refused>
  close(): void
}

type Verified = { readonly header: TokenHeader; readonly claims: Claims; readonly key: VerificationKey }

const sleep: World['sleep'] = (timeMs, signal) =>
  timeout(timeMs, undefined, { ref: false, ...(signal && { signal }) }).catch(() => undefined)

const requireSetting = (name: string, value: string): void => {
  if (typeof value !== 'string' || value.trim() === '') throw new StartupError(`${name} must not be empty.`)
}

const requireIssuerUrl = (issuer: string): void => {
  const url = URL.canParse(issuer) ? new URL(issuer) : undefined
  const plain = url && /^https?:$/.test(url.protocol) && !url.search && !url.hash && !url.username
  if (!plain) throw new StartupError('OIDC_ISSUER must be an http or https URL without user, query and fragment.')
}

/** The library checks issuer, audience and times a second time. All are given, since it accepts any that is absent. */
const signatureFault = (
  token: string,
  { header, key }: Verified,
  { issuer, audience }: TokenVerifierOptions,
  nowSeconds: number,
): TokenFault | undefined => {
  try {
    jwt.verify(token, key.key, {
      algorithms: [header.alg],
      issuer,
      audience,
      clockTolerance: LEEWAY_SECONDS,
      clockTimestamp: nowSeconds,
    })
    return undefined
  } catch (error) {
    if (error instanceof jwt.TokenExpiredError) return 'expired'
    return error instanceof jwt.NotBeforeError ? 'not_yet_valid' : 'signature_invalid'
  }
}

/**
 * Throws a StartupError that names the setting when issuer or audience is empty, or when a reachable issuer publishes
 * no usable key or a flawed one: a shared secret, or an RSA key that is too short. An unreachable issuer does not
 * prevent the start: until it answers, tokens are refused with `keys_unavailable`. Flawed keys that it publishes later
 * verify no token.
 *
 * Long because its functions share the keys and the cache of one verifier.
 */
export const openTokenVerifier = async (options: TokenVerifierOptions): Promise<TokenVerifier> => {
  requireSetting('OIDC_ISSUER', options.issuer)
  requireSetting('OIDC_AUDIENCE', options.audience)
  requireIssuerUrl(options.issuer)
  const { now = Date.now, monotonicNow = () => performance.now(), onKeysUnreachable = () => {} } = options
  const readJwks = options.fetchJwks ?? fetchJwksFrom(options.issuer)
  let flaw: string | undefined
  const fetchJwks: FetchJwks = async () => {
    const published = await readJwks()
    flaw = flawOf(published)
    return published
  }
  let reached = true
  const onFailure = (error: unknown): void => {
    reached = false
    onKeysUnreachable(error)
  }
  const keys = openKeySet({ fetchJwks, monotonicNow, sleep: options.sleep ?? sleep, onFailure })
  await keys.ready()
  if (flaw !== undefined) throw new StartupError(`OIDC_ISSUER publishes ${flaw}`)
  if (reached && keys.size() === 0)
    throw new StartupError('OIDC_ISSUER publishes no key that is fit for ES256 or RS256.')

  const verified = new LRUCache<string, Verified>({ max: MAX_CACHED_TOKENS, maxSize: CACHED_CHARACTERS_MAX })
  const nowSeconds = (): number => Math.floor(now() / 1000)

  const verifyNew = async (token: string, since: number): Promise<Verified | TokenFault> => {
    const read = readCompactToken(token)
    if (typeof read === 'string') return read
    const claims = readClaims(read.claims, options)
    if (typeof claims === 'string') return claims
    const key = await keys.find(read.header.alg, read.header.kid, since)
    if (typeof key === 'string') return key
    const candidate = { header: read.header, claims, key }
    return signatureFault(token, candidate, options, nowSeconds()) ?? faultAt(claims, nowSeconds()) ?? candidate
  }

  /** The cached verification of a token, as long as its key is in the set. */
  const cachedVerification = (digest: string): Verified | undefined => {
    const cached = verified.get(digest)
    if (!cached || keys.isCurrent(cached.header.alg, cached.header.kid, cached.key)) return cached
    verified.delete(digest)
    return undefined
  }

  const verify: TokenVerifier['verify'] = async (token, beforeWork) => {
    if (!token) return refuse('missing')
    const since = keys.readings()
    const reading = keys.ready()
    if (reading) await reading
    // The cache holds the hash instead of the token, so a heap dump has no credentials.
    const digest = hash('sha256', token, 'base64')
    const cached = cachedVerification(digest)
    if (!cached) await beforeWork?.()
    const outcome = cached ?? (await verifyNew(token, since))
    if (typeof outcome === 'string') return refuse(outcome)
    const fault = cached ? faultAt(cached.claims, nowSeconds()) : undefined
    if (fault) return refuse(fault)
    if (!cached) verified.set(digest, outcome, { size: token.length })
    const revoked = options.isRevoked?.(outcome.claims) ?? false
    return (typeof revoked === 'boolean' ? revoked : await revoked) ? refuse('revoked') : outcome.claims.principal
  }

  const close = (): void => {
    keys.close()
    verified.clear()
  }

  return { verify, close }
}
