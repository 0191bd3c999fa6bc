import { hash } from 'node:crypto'
import type { AdapterPayload } from 'oidc-provider'

/** A thing that the issuer remembers: its kind (`RefreshToken`) and the secret that names it. */
export type RecordName = { readonly kind: string; readonly id: string }

export type NewRecord = RecordName & {
  readonly payload: AdapterPayload
  readonly lifetimeSeconds: number
}

/**
 * Where the issuer remembers codes, refresh tokens, sessions and the like. Expired records are as if they were not there.
 */
export type Records = {
  put(record: NewRecord): Promise<void>
  /** False, and nothing is changed, when it is there already. */
  putIfNew(record: NewRecord): Promise<boolean>
  /** With `consumed`, in Unix seconds, once it is. */
  get(name: RecordName): Promise<AdapterPayload | undefined>
  /** True for exactly one caller, however many ask at once. */
  consume(name: RecordName): Promise<boolean>
  remove(name: RecordName): Promise<void>
  removeOfGrant(kind: string, grantId: string): Promise<void>
}

/** The name under which a secret may be written down. */
export const fingerprintOf = (secret: string): string => hash('sha256', secret, 'base64url')
