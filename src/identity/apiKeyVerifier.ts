import type { ApiKeyState, KeySecret } from '../../streams/apiKey/index.ts'
import { Unavailable } from '../ports.ts'
import { type ParsedKey, parseKey } from './apiKeyFormat.ts'
import { type ApiKeySecrets, isSameHash } from './apiKeySecrets.ts'
import { createApiKeyLookup, type IssuedKey, type LoadKey, type Reading } from './apiKeyLookup.ts'
import { type Principal, READ_SCOPES } from './principal.ts'
import { type KeyFault, type KeyRefused, refuseKey } from './credentialRefusals.ts'

export type ApiKeyVerifierOptions = {
  readonly secrets: ApiKeySecrets
  readonly load: LoadKey
  /** Unix milliseconds. */
  readonly now: () => number
  /** A monotonic clock in milliseconds, for the age of readings. */
  readonly monotonicNow?: () => number
}

export type ApiKeyVerifier = {
  /**
   * The caller, or why the key is refused; never rejects. `beforeWork` is awaited before the store is read for an
   * unknown key or a wrong secret.
   */
  readonly verify: (key: string, beforeWork?: BeforeWork) => Promise<Principal | KeyRefused>
}

type BeforeWork = () => Promise<unknown>

type IssuedState = Exclude<ApiKeyState, { status: 'none' }>

/** A revoked key has no hash any more; for others the secret is checked before anything is revealed. */
const faultOf = (key: IssuedState, hash: string, nowMs: number): KeyFault | undefined => {
  if (key.status === 'revoked') return 'key_revoked'
  const { current, previous } = key
  // Both are compared, so the time does not reveal which one matched.
  const isCurrent = isSameHash(current.hash, hash)
  const isPrevious = previous !== null && isSameHash(previous.hash, hash)
  const isOver = (secret: KeySecret): boolean => Date.parse(secret.expires_at) <= nowMs
  if (isCurrent) return isOver(current) ? 'key_expired' : undefined
  if (isPrevious) return isOver(previous) ? 'key_rotated_out' : undefined
  return 'key_secret_wrong'
}

/** The caller, with read scopes only. */
const principalOf = ({ tenant, subject }: IssuedKey, id: string, { scopes, quota }: IssuedState): Principal => ({
  tenant,
  subject,
  client: id,
  scopes: new Set(READ_SCOPES.filter(scope => scopes.includes(scope))),
  kind: 'api_key',
  ...(quota === null ? {} : { quota: { requests: quota.requests, windowSeconds: quota.window_seconds } }),
})

/** Verifies API keys. Malformed keys and keys of another environment are refused without a lookup. */
export const openApiKeyVerifier = (options: ApiKeyVerifierOptions): ApiKeyVerifier => {
  const { secrets, load, now, monotonicNow = () => performance.now() } = options
  const lookup = createApiKeyLookup(load, monotonicNow)

  const decide = ({ issued }: Reading, { id, secret }: ParsedKey): Principal | KeyFault => {
    if (issued === undefined || issued.key.status === 'none') return 'key_unissued'
    const { key } = issued
    return faultOf(key, secrets.hashOfSent(id, secret), now()) ?? principalOf(issued, id, key)
  }

  const check = async (sent: ParsedKey, beforeWork?: BeforeWork): Promise<Principal | KeyFault> => {
    if (sent.environment !== secrets.environment) return 'key_environment_wrong'
    const since = monotonicNow()
    if (!lookup.isKnown(sent.id)) await beforeWork?.()
    const reading = await lookup.recentReading(sent.id)
    const decided = decide(reading, sent)
    // A wrong secret may be a new one, from a rotation after the cached reading: a new secret is valid at once.
    if (decided !== 'key_secret_wrong' || reading.at >= since) return decided
    await beforeWork?.()
    return decide(await lookup.newReading(sent.id), sent)
  }

  const verify: ApiKeyVerifier['verify'] = async (text, beforeWork) => {
    const parsed = parseKey(text)
    if (typeof parsed === 'string') return refuseKey(parsed)
    try {
      const checked = await check(parsed, beforeWork)
      return typeof checked === 'string' ? refuseKey(checked) : checked
    } catch (error) {
      if (error instanceof Unavailable) return refuseKey('key_unreadable')
      throw error
    }
  }
  return { verify }
}
