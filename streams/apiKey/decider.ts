import type { Annotations, Claim } from '../claim.ts'
import { type Decider, type Rejection, reject } from '../decider.ts'
import { PersistentSet } from '../persistentMap.ts'
import type { ApiKeyEvent, KeyQuota } from './events.ts'

/** What is the same for all secrets of a key. */
export type KeyTerms = {
  readonly scopes: readonly string[]
  readonly quota: KeyQuota | null
  readonly lifetime_days: number
}
/** A secret as far as it is kept: where it comes from, and what it is recognised by. */
export type MintedSecret = { readonly nonce: string; readonly hash: string }
/** `expires_at`: RFC 3339. */
export type KeySecret = MintedSecret & { readonly expires_at: string }

/** `at` is now. */
export type IssueApiKey = KeyTerms &
  MintedSecret & {
    type: 'IssueApiKey'
    at: string
    name: string
    metadata: Annotations
    claim: Claim | null
  }
/** The secret so far goes on for so long beside the new one. */
export type RotateApiKey = MintedSecret & {
  type: 'RotateApiKey'
  at: string
  overlap_seconds: number
  claim: Claim | null
}
export type RevokeApiKey = { type: 'RevokeApiKey' }
export type ApiKeyCommand = IssueApiKey | RotateApiKey | RevokeApiKey

export type ApiKeyCode = 'resource_not_found' | 'concurrent_modification'

/**
 * active ─▶ revoked, which is final. While it is active it has one secret, or two for as long as a rotation overlaps. A
 * secret whose time is over is dead without a word; the key itself may get a new one all the same.
 */
type Issued = KeyTerms & {
  /** The idempotency keys, hashed, of the rotations so far: none of them is carried out twice, however late it is sent again. */
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

const issue = ({ type: _, at, scopes, ...terms }: IssueApiKey, key: ApiKeyState): Decision => {
  if (key.status !== 'none') return reject('concurrent_modification')
  const expires_at = after(at, terms.lifetime_days * DAY_MS)
  return [{ type: 'ApiKeyIssued', data: { ...terms, scopes: [...scopes], expires_at } }]
}

const rotate = ({ at, nonce, hash, overlap_seconds, claim }: RotateApiKey, key: ApiKeyState): Decision => {
  if (key.status === 'none') return reject('resource_not_found')
  if (claim !== null && key.rotations.has(claim.key_hash)) return []
  if (key.status === 'revoked') return reject('resource_not_found')
  if (key.current.nonce === nonce) return []
  const expires_at = after(at, key.lifetime_days * DAY_MS)
  // No overlap lends a secret more time than it was given.
  const previous_until = earlier(after(at, overlap_seconds * SECOND_MS), key.current.expires_at)
  return [{ type: 'ApiKeyRotated', data: { nonce, hash, expires_at, previous_until, claim } }]
}

// What is revoked is gone for whoever would revoke it, as with an order that was deleted.
const revoke = (key: ApiKeyState): Decision =>
  key.status === 'active' ? [{ type: 'ApiKeyRevoked', data: {} }] : reject('resource_not_found')

const decide = (command: ApiKeyCommand, state: ApiKeyState): Decision => {
  switch (command.type) {
    case 'IssueApiKey':
      return issue(command, state)
    case 'RotateApiKey':
      return rotate(command, state)
    case 'RevokeApiKey':
      return revoke(state)
  }
}

const evolve = (key: ApiKeyState, event: ApiKeyEvent): ApiKeyState => {
  if (event.type === 'ApiKeyIssued') {
    const { scopes, quota, lifetime_days, nonce, hash, expires_at } = event.data
    const terms = { scopes, quota, lifetime_days, rotations: PersistentSet.of<string>() }
    return { status: 'active', ...terms, current: { nonce, hash, expires_at }, previous: null }
  }
  // A stored fact is never refused; there is nothing that it could change of a key that is not, or no longer, there.
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
  decide,
  evolve,
}
