import type { IdempotencyRecord } from '../../../streams/idempotencyRecord.ts'
import type { World } from '../../ports.ts'

/** IDEMPOTENCY_RETENTION: the expiry of a key is in its record, so another setting does not change used keys. */

/** The `expires_at` of an idempotency record that is made now. */
export const expiryOf = (world: World, retentionMs: number): string => new Date(world.now() + retentionMs).toISOString()

export const isExpired = ({ expires_at }: IdempotencyRecord, world: World): boolean =>
  Date.parse(expires_at) <= world.now()
