import { createPublicKey, type KeyObject } from 'node:crypto'
import jwksClient, { type SigningKey } from 'jwks-rsa'
import { z } from 'zod'
import type { Algorithm } from './compactToken.ts'
import type { FetchJwks } from './jwksOverHttp.ts'

/** In use, the set is read again behind the requests' back when it is this old. */
const REFRESH_AFTER_MS = 30_000
/** Older than this, it is read again before anything is believed: a removed key stops well within 60 s. */
const MAX_AGE_MS = 45_000
/** While the issuer cannot be reached, the last set goes on working for this long. */
const MAX_OUTAGE_MS = 900_000
const RETRY_AFTER_MS = 2000
const UNKNOWN_KID_PAUSE_MS = 30_000
const MAX_KEYS = 100
const MIN_RSA_BITS = 2048

export type VerificationKey = { readonly alg: Algorithm; readonly key: KeyObject; readonly pem: string }

export type KeySet = {
  /** Resolves once the set is young enough to be believed; undefined when it already is, which is nearly always. */
  settle(): Promise<void> | undefined
  /** How many readings of the published set have begun. */
  readings(): number
  /** `since`: the readings begun when the token came in. One that began later has seen all there is to see. */
  find(alg: Algorithm, kid: string, since: number): Promise<VerificationKey | 'key_unknown' | 'keys_unreachable'>
  /** Whether this very key is still in the set and the set still counts. */
  isCurrent(alg: Algorithm, kid: string, key: VerificationKey): boolean
  size(): number
  close(): void
}

export type KeySetOptions = {
  readonly fetchJwks: FetchJwks
  /** Milliseconds that never jump: a wall clock set back must not keep a removed key alive. */
  readonly monotonicNow: () => number
  readonly onFailure: (error: unknown) => void
}

type Keys = ReadonlyMap<string, VerificationKey>

const jwksSchema = z.object({ keys: z.array(z.looseObject({})).max(MAX_KEYS) })

/** RFC 7517 lets keys of different types share a kid. */
const keyId = (alg: Algorithm, kid: string): string => `${alg} ${kid}`

/** Which algorithm a public key may check; nothing for one that is too weak or of a kind that we do not take. */
const algorithmOf = (key: KeyObject): Algorithm | undefined => {
  const { modulusLength = 0, namedCurve } = key.asymmetricKeyDetails ?? {}
  if (key.asymmetricKeyType === 'ec' && namedCurve === 'prime256v1') return 'ES256'
  return key.asymmetricKeyType === 'rsa' && modulusLength >= MIN_RSA_BITS ? 'RS256' : undefined
}

/** The same key keeps its object from one reading to the next, so that `isCurrent` is a comparison of references. */
const collect = (published: readonly SigningKey[], previous: Keys): Keys => {
  const keys = new Map<string, VerificationKey>()
  for (const { kid, alg: declared, getPublicKey } of published.map(describe)) {
    const pem = getPublicKey()
    const key = createPublicKey(pem)
    const alg = algorithmOf(key)
    if (!alg || !kid || (declared && declared !== alg)) continue
    const id = keyId(alg, kid)
    const known = previous.get(id)
    if (!keys.has(id)) keys.set(id, known?.pem === pem ? known : { alg, key, pem })
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
 * jwks-rsa reads the published set and picks the public signing keys out of it. Its own cache and rate limit stay off:
 * they count per kid and per minute, so tokens with invented kids would use up the fetches that a rotation needs, and a
 * cached key would outlive its removal. Resolves to no keys when the issuer says that it has none.
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

type Readings = {
  /** Joins the reading under way or begins one; never rejects. */
  read(): Promise<void>
  underWay(): Promise<void> | undefined
  begun(): number
  /** The number of the last one that brought a set, counted as `begun` counts. */
  lastGood(): number
  /** Milliseconds since the last good one began, which is when the set was surely the published one. */
  ageMs(): number
  sinceAttemptMs(): number
  /** Whether the last one failed. */
  failing(): boolean
  keys(): Keys
}

/** Reads the published set, one reading at a time, and keeps what the last good one brought. */
const openReadings = ({ fetchJwks, monotonicNow, onFailure }: KeySetOptions): Readings => {
  const readPublished = openReader(fetchJwks)
  let keys: Keys = new Map()
  let readAt = Number.NEGATIVE_INFINITY
  let attemptedAt = Number.NEGATIVE_INFINITY
  let begun = 0
  let lastGood = 0
  let failing = false
  let underWay: Promise<void> | undefined

  const readOnce = async (): Promise<void> => {
    const startedAt = monotonicNow()
    attemptedAt = startedAt
    begun += 1
    try {
      keys = collect(await readPublished(), keys)
      readAt = startedAt
      lastGood = begun
      failing = false
    } catch (error) {
      failing = true
      onFailure(error)
    }
  }

  const read = (): Promise<void> => {
    underWay ??= readOnce().finally(() => {
      underWay = undefined
    })
    return underWay
  }

  return {
    read,
    underWay: () => underWay,
    begun: () => begun,
    lastGood: () => lastGood,
    ageMs: () => monotonicNow() - readAt,
    sinceAttemptMs: () => monotonicNow() - attemptedAt,
    failing: () => failing,
    keys: () => keys,
  }
}

/**
 * The issuer's keys as they are now.
 *
 * The set is *fresh* up to REFRESH_AFTER_MS after its last reading began, and used as it is. Then it is *aging*: the next
 * use starts a reading, but does not wait for it. From MAX_AGE_MS on it is *stale*: uses wait for that reading. Only when
 * the reading fails is a stale set believed, up to MAX_OUTAGE_MS, and then it is empty. Readings never overlap, and after
 * a failed one the next begins RETRY_AFTER_MS later at the earliest, so that a dead issuer costs nobody a timeout twice.
 *
 * A kid that is not in the set causes a reading at once, since a new key may be in use before the next regular one. If
 * it brings the key, the issuer has rotated, and nothing is held against the next kid. If not, no unknown kid causes a
 * reading for UNKNOWN_KID_PAUSE_MS: tokens with invented kids cannot make us flood the issuer.
 */
export const openKeySet = (options: KeySetOptions): KeySet => {
  const { monotonicNow } = options
  let closed = false
  let fruitlessAt = Number.NEGATIVE_INFINITY
  const onFailure = (error: unknown): void => {
    if (!closed) options.onFailure(error)
  }
  const readings = openReadings({ ...options, onFailure })

  const settle = (): Promise<void> | undefined => {
    const ageMs = readings.ageMs()
    if (ageMs < REFRESH_AFTER_MS || closed) return undefined
    const resting = readings.failing() && readings.sinceAttemptMs() < RETRY_AFTER_MS
    const refreshed = resting ? undefined : readings.read()
    const usable = ageMs < MAX_AGE_MS || (readings.failing() && ageMs < MAX_OUTAGE_MS)
    return usable ? undefined : refreshed
  }

  const lookUp = (alg: Algorithm, kid: string): VerificationKey | undefined =>
    readings.ageMs() < MAX_OUTAGE_MS ? readings.keys().get(keyId(alg, kid)) : undefined

  const readForUnknown = async (alg: Algorithm, kid: string): Promise<VerificationKey | undefined> => {
    if (closed || monotonicNow() - fruitlessAt < UNKNOWN_KID_PAUSE_MS) return undefined
    // The mark is set before the reading, so that other kids that arrive during it do not each cause one more.
    fruitlessAt = monotonicNow()
    await readings.read()
    const found = lookUp(alg, kid)
    if (found) fruitlessAt = Number.NEGATIVE_INFINITY
    return found
  }

  const find: KeySet['find'] = async (alg, kid, since) => {
    // A reading under way may bring the key; one that began too early to do so must not be mistaken for an answer.
    if (!lookUp(alg, kid)) await readings.underWay()
    const known = lookUp(alg, kid)
    const key = known ?? (readings.lastGood() > since ? undefined : await readForUnknown(alg, kid))
    return key ?? (readings.failing() ? 'keys_unreachable' : 'key_unknown')
  }

  return {
    settle,
    readings: () => readings.begun(),
    find,
    isCurrent: (alg, kid, key) => lookUp(alg, kid) === key,
    size: () => readings.keys().size,
    close: () => {
      closed = true
    },
  }
}
