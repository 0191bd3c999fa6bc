import type { DataOf } from '../codec.ts'
import { decidedBy, type Decider, type Rejection, reject } from '../decider.ts'
import { PersistentSet } from '../persistentMap.ts'
import type { ApiKeyEvent } from './events.ts'

/** The terms that all secrets of a key share. */
type KeyTerms = Pick<DataOf<ApiKeyEvent, 'ApiKeyIssued'>, 'scopes' | 'quota' | 'lifetime_days'>
/** The stored part of a secret. */
export type KeySecret = Pick<DataOf<ApiKeyEvent, 'ApiKeyIssued'>, 'nonce' | 'hash' | 'expires_at'>

/** `at` is now. */
export type IssueApiKey = Omit<DataOf<ApiKeyEvent, 'ApiKeyIssued'>, 'expires_at'> & { type: 'IssueApiKey'; at: string }
/** `overlap_seconds`: the time for which the old secret stays valid beside the new one. */
export type RotateApiKey = Pick<DataOf<ApiKeyEvent, 'ApiKeyRotated'>, 'nonce' | 'hash' | 'claim'> & {
  type: 'RotateApiKey'
  at: string
  overlap_seconds: number
}
export type RevokeApiKey = { type: 'RevokeApiKey' }
export type ApiKeyCommand = IssueApiKey | RotateApiKey | RevokeApiKey

export type ApiKeyCode = 'resource_not_found' | 'concurrent_modification'

/**
 * active ─▶ revoked, which is final. An active key has one secret, or two for some time after a rotation. A secret expires
 * without an event; the key may get a new secret afterwards.
 */
type Issued = KeyTerms & {
  /** The hashed idempotency keys of all rotations, so a late repetition does not rotate again. */
  readonly rotations: PersistentSet<string>
}
export type ApiKeyState =
  | { readonly status: 'none' }
  | (Issued & { readonly status: 'active'; readonly current: KeySecret; readonly previous: KeySecret | null })
  | (Issued & { readonly status: 'revoked' })

type Decision = readonly ApiKeyEvent[] | Rejection<ApiKeyCode>

const SECOND_MS = 1_000
const DAY_MS = 24 * 60 * 60 * SECOND_MS

const after = (at: string, timeMs: number): string => new Date(Date.parse(at) + timeMs).toISOString()
const earlier = (a: string, b: string): string => (Date.parse(a) < Date.parse(b) ? a : b)

const issue = ({ type: _, at, ...terms }: IssueApiKey, key: ApiKeyState): Decision => {
  if (key.status !== 'none') return reject('concurrent_modification')
  const expires_at = after(at, terms.lifetime_days * DAY_MS)
  return [{ type: 'ApiKeyIssued', data: { ...terms, expires_at } }]
}

const rotate = ({ at, nonce, hash, overlap_seconds, claim }: RotateApiKey, key: ApiKeyState): Decision => {
  if (key.status === 'none') return reject('resource_not_found')
  if (claim !== null && key.rotations.has(claim.key_hash)) return []
  if (key.status === 'revoked') return reject('resource_not_found')
  if (key.current.nonce === nonce) return []
  const expires_at = after(at, key.lifetime_days * DAY_MS)
  // An overlap never extends a secret beyond its own expiry.
  const previous_until = earlier(after(at, overlap_seconds * SECOND_MS), key.current.expires_at)
  return [{ type: 'ApiKeyRotated', data: { nonce, hash, expires_at, previous_until, claim } }]
}

// Revoking a revoked key is "not found", as deleting a deleted order is.
const revoke = (_: RevokeApiKey, key: ApiKeyState): Decision =>
  key.status === 'active' ? [{ type: 'ApiKeyRevoked', data: {} }] : reject('resource_not_found')

const evolve = (key: ApiKeyState, event: ApiKeyEvent): ApiKeyState => {
  if (event.type === 'ApiKeyIssued') {
    const { scopes, quota, lifetime_days, nonce, hash, expires_at } = event.data
    const terms = { scopes, quota, lifetime_days, rotations: PersistentSet.of<string>() }
    return { status: 'active', ...terms, current: { nonce, hash, expires_at }, previous: null }
  }
  // `evolve` never refuses a stored event; on a key that does not exist or is revoked it has no effect.
  if (key.status !== 'active') return key
  const { status: _, current, previous: _previous, ...terms } = key
  switch (event.type) {
    case 'ApiKeyRotated': {
      const { previous_until, claim, ...fresh } = event.data
      const rotations = claim === null ? terms.rotations : terms.rotations.with(claim.key_hash)
      const previous = { ...current, expires_at: previous_until }
      return { status: 'active', ...terms, rotations, current: fresh, previous }
    }
    case 'ApiKeyRevoked':
      return { status: 'revoked', ...terms }
  }
}

export const apiKeyDecider: Decider<ApiKeyState, ApiKeyCommand, ApiKeyEvent, ApiKeyCode> = {
  initial: { status: 'none' },
  ...decidedBy<ApiKeyCommand, ApiKeyState, Decision>({
    IssueApiKey: ['unlimited', issue],
    RotateApiKey: ['limited', rotate],
    RevokeApiKey: ['unlimited', revoke],
  }),
  evolve,
}
