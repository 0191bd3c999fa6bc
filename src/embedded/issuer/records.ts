import { hash } from 'node:crypto'
import type { AdapterPayload } from 'oidc-provider'

/** The name of a record: its kind (`RefreshToken`) and the secret that identifies it. */
export type RecordName = { readonly kind: string; readonly id: string }

export type NewRecord = RecordName & {
  readonly payload: AdapterPayload
  readonly lifetimeSeconds: number
}

/**
 * The port for codes, refresh tokens, sessions and other records of the issuer. Expired records are treated as absent.
 */
export type Records = {
  put(record: NewRecord): Promise<void>
  /** False, without a change, if it exists already. */
  putIfNew(record: NewRecord): Promise<boolean>
  /** The payload has `consumed`, the time in Unix seconds, if the record is consumed. */
  get(name: RecordName): Promise<AdapterPayload | undefined>
  /** True for exactly one of any number of concurrent callers. */
  consume(name: RecordName): Promise<boolean>
  remove(name: RecordName): Promise<void>
  removeOfGrant(kind: string, grantId: string): Promise<void>
}

/** The hash under which a secret may be stored. */
export const fingerprintOf = (secret: string): string => hash('sha256', secret, 'base64url')
