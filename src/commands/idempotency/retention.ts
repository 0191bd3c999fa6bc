import type { IdempotencyRecord } from '../../../streams/idempotencyRecord.ts'
import type { World } from '../../ports.ts'

/**
 * How long an idempotency key is remembered: the setting IDEMPOTENCY_RETENTION. The time at which a key expires is
 * stored in its idempotency record, so another setting does not change the keys that were used before.
 */

/** The `expires_at` of an idempotency record that is made now. */
export const expiryOf = (world: World, retentionMs: number): string => new Date(world.now() + retentionMs).toISOString()

export const isExpired = ({ expires_at }: IdempotencyRecord, world: World): boolean =>
  Date.parse(expires_at) <= world.now()
