import { createPublicKey, type KeyObject } from 'node:crypto'
import jwksClient, { type SigningKey } from 'jwks-rsa'
import { z } from 'zod'
import type { Algorithm } from './compactToken.ts'
import type { World } from '../ports.ts'
import { createRevalidated, type Revalidated, type RevalidationTimes } from '../lib/staleWhileRevalidate.ts'
import type { FetchJwks } from './fetchJwks.ts'
import { MIN_RSA_BITS } from './keySetFlaws.ts'
import { backoffMs } from '../lib/time.ts'

/** When the issuer's keys are read again (rotation), and how long they are used in an outage. */

const TIMES: RevalidationTimes = {
  refreshAfterMs: 30_000,
  // A removed key stops well within 60 s.
  maxAgeMs: 45_000,
  outageMaxMs: 900_000,
  retryAfterMs: 2_000,
}
const UNKNOWN_KID_PAUSE_MS = 30_000
/** The readings that follow failed ones by themselves; after them the next unknown kid causes one again. */
const UNKNOWN_KID_RETRIES_MAX = 5
const MAX_KEYS = 100

export type VerificationKey = { readonly alg: Algorithm; readonly key: KeyObject; readonly pem: string }

export type KeySet = {
  /** Resolves once the set is recent enough to be used; undefined when it already is, which is nearly always. */
  ready(): Promise<void> | undefined
  readings(): number
  /** `since`: how many readings had begun when the token arrived. A good later one is new enough. */
  find(alg: Algorithm, kid: string, since: number): Promise<VerificationKey | 'key_unknown' | 'keys_unreachable'>
  /** Whether this key is in the current set, and the set is younger than `outageMaxMs`. */
  isCurrent(alg: Algorithm, kid: string, key: VerificationKey): boolean
  size(): number
  close(): void
}

export type KeySetOptions = {
  readonly fetchJwks: FetchJwks
  /** A monotonic clock in milliseconds: a wall clock that is set back must not keep a removed key alive. */
  readonly monotonicNow: () => number
  readonly sleep: World['sleep']
  readonly onFailure: (error: unknown) => void
}

type Keys = ReadonlyMap<string, VerificationKey>

const jwksSchema = z.object({ keys: z.array(z.looseObject({})).max(MAX_KEYS) })

/** RFC 7517 permits keys of different types to share a kid. */
const keyId = (alg: Algorithm, kid: string): string => `${alg} ${kid}`

/** The algorithm that a public key verifies; undefined for weak or unsupported keys. */
const algorithmOf = (key: KeyObject): Algorithm | undefined => {
  const { modulusLength = 0, namedCurve } = key.asymmetricKeyDetails ?? {}
  if (key.asymmetricKeyType === 'ec' && namedCurve === 'prime256v1') return 'ES256'
  return key.asymmetricKeyType === 'rsa' && modulusLength >= MIN_RSA_BITS ? 'RS256' : undefined
}

/** The same key keeps its object from one reading to the next, so `isCurrent` is a comparison of references. */
const collect = (published: readonly SigningKey[], previous: Keys): Keys => {
  const keys = new Map<string, VerificationKey>()
  for (const { kid, alg: algorithm, getPublicKey } of published.map(describe)) {
    const pem = getPublicKey()
    const key = createPublicKey(pem)
    const alg = algorithmOf(key)
    if (!alg || !kid || (algorithm && algorithm !== alg)) continue
    const id = keyId(alg, kid)
    const previousKey = previous.get(id)
    if (!keys.has(id)) keys.set(id, previousKey?.pem === pem ? previousKey : { alg, key, pem })
  }
  return keys
}

const describe = (signingKey: SigningKey): { kid?: string; alg?: string; getPublicKey: () => string } => ({
  kid: signingKey.kid,
  alg: signingKey.alg,
  getPublicKey: () => signingKey.getPublicKey(),
})

const isUnreachable = (error: unknown): boolean =>
  error instanceof Error && 'isEndpointUnavailable' in error && error.isEndpointUnavailable === true

/**
 * jwks-rsa picks the public keys. Its cache and rate limit are off: tokens with invented kids would use up the fetches
 * of a rotation, and a cached key outlive its removal. No keys if the issuer says so.
 */
const openReader = (fetchJwks: FetchJwks): (() => Promise<readonly SigningKey[]>) => {
  const fetcher = async (): Promise<{ keys: unknown }> => jwksSchema.parse(await fetchJwks())
  const client = jwksClient({ fetcher, jwksUri: 'jwks:', cache: false, rateLimit: false })
  return async () => {
    try {
      return await client.getSigningKeys()
    } catch (error) {
      if (isUnreachable(error)) throw error
      return []
    }
  }
}

const hasNewKey = (before: Keys | undefined, after: Keys | undefined): boolean =>
  [...(after?.keys() ?? [])].some(id => before?.has(id) !== true)

const pauseAfterFailuresMs = (failures: number): number =>
  backoffMs(failures - 1, TIMES.retryAfterMs, UNKNOWN_KID_PAUSE_MS)

/**
 * The issuer's current keys. The set is read again while it is in use (staleWhileRevalidate.ts); while the issuer does
 * not answer, the last set counts for `outageMaxMs`, and then it is empty.
 *
 * A kid that is not in the set causes a reading at once, since a new key may be in use before the next regular one. If
 * the reading brings a new key, the issuer has rotated its keys, and the next unknown kid causes a reading again. If
 * not, a pause of UNKNOWN_KID_PAUSE_MS begins, so tokens with invented kids cannot flood the issuer. Unknown kids
 * that come during the pause are refused, and cause one reading at its end: a new key is known at the latest one pause
 * after its first use. After a failed reading the pause is shorter.
 *
 * Long because its functions share the readings of one set.
 */
export const openKeySet = (options: KeySetOptions): KeySet => {
  const { monotonicNow } = options
  const closing = new AbortController()
  let pausedUntilMs = Number.NEGATIVE_INFINITY
  let failures = 0
  let scheduled: Promise<void> | undefined
  const readPublished = openReader(options.fetchJwks)
  const keys: Revalidated<Keys> = createRevalidated({
    ...TIMES,
    monotonicNow,
    read: async () => collect(await readPublished(), keys.value() ?? new Map()),
    onFailure: error => {
      if (!closing.signal.aborted) options.onFailure(error)
    },
  })

  const lookUp = (alg: Algorithm, kid: string): VerificationKey | undefined =>
    keys.ageMs() < TIMES.outageMaxMs ? keys.value()?.get(keyId(alg, kid)) : undefined

  const readForUnknown = async (): Promise<void> => {
    // Set before the reading, so other kids that arrive during it do not each cause one more.
    pausedUntilMs = monotonicNow() + UNKNOWN_KID_PAUSE_MS
    const before = keys.value()
    await keys.read()
    failures = keys.isFailing() ? failures + 1 : 0
    if (failures > 0) pausedUntilMs = monotonicNow() + pauseAfterFailuresMs(failures)
    else if (hasNewKey(before, keys.value())) pausedUntilMs = Number.NEGATIVE_INFINITY
    if (failures > 0 && failures <= UNKNOWN_KID_RETRIES_MAX) readAfterPause()
  }

  const readAfterPause = (): void => {
    scheduled ??= options.sleep(pausedUntilMs - monotonicNow(), closing.signal).then(() => {
      scheduled = undefined
      return closing.signal.aborted ? undefined : readForUnknown()
    })
  }

  const find: KeySet['find'] = async (alg, kid, since) => {
    // The reading in flight may bring the key. If it does not, and began before the token arrived, another one is
    // needed.
    if (!lookUp(alg, kid)) await keys.underWay()
    if (!lookUp(alg, kid) && keys.lastGood() <= since && !closing.signal.aborted) {
      if (monotonicNow() >= pausedUntilMs) await readForUnknown()
      else readAfterPause()
    }
    return lookUp(alg, kid) ?? (keys.isFailing() ? 'keys_unreachable' : 'key_unknown')
  }

  return {
    ready: () => (closing.signal.aborted ? undefined : keys.ready()),
    readings: () => keys.begun(),
    find,
    isCurrent: (alg, kid, key) => lookUp(alg, kid) === key,
    size: () => keys.value()?.size ?? 0,
    close: () => closing.abort(),
  }
}
