import type { IdempotencyRecord } from '../../../streams/idempotencyRecord.ts'
import type { AnyEvent } from '../../../streams/decider.ts'
import type { Recorded } from '../../../streams/envelope.ts'
import { type Id, type IdPrefix, type KeyBindingId, withPrefix } from '../../../streams/ids.ts'
import { keyBindingEntity } from '../entities.ts'
import { type Context, handle, type Ledger } from '../commandHandler.ts'
import { isExpired } from './retention.ts'

/** The conflicts of a reused key, by the record of its first request: the `claim` in an event, or in a stream of the key. */

/** The reason why a request may not use its key: another request has used it, or the first use is too long ago. */
export type KeyConflict =
  /** JSON pointers (RFC 6901) at which the two requests differ. */
  | { readonly kind: 'key_reused'; readonly pointers: readonly string[] }
  | { readonly kind: 'key_expired'; readonly id: string }

const isObject = (value: unknown): value is Record<string, unknown> => value !== null && typeof value === 'object'

/** JSON pointers (RFC 6901) at which two requests differ: names only, never values. */
export const differingPointers = (a: unknown, b: unknown, at = ''): string[] => {
  if (!isObject(a) || !isObject(b)) return Object.is(a, b) ? [] : [at]
  const names = new Set([...Object.keys(a), ...Object.keys(b)])
  return [...names].flatMap(name =>
    differingPointers(a[name], b[name], `${at}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`),
  )
}

/** The idempotency record in the first event of a stream; undefined where the stream began without a key. */
export const idempotencyRecordIn = (history: readonly Recorded<AnyEvent>[]): IdempotencyRecord | undefined => {
  const data = history[0]?.event.data
  return data && 'claim' in data ? ((data.claim as IdempotencyRecord | null) ?? undefined) : undefined
}

/**
 * The conflict of a used key; undefined for the same request within the retention, which counts as durable: the effect
 * of the first one is its own.
 */
export const keyConflict = (
  { world, noteEffect }: Ledger,
  id: string,
  record: IdempotencyRecord,
  first: IdempotencyRecord | undefined,
): KeyConflict | undefined => {
  if (first === undefined || first.fingerprint !== record.fingerprint)
    return { kind: 'key_reused', pointers: differingPointers(first?.request ?? {}, record.request) }
  noteEffect()
  return isExpired(first, world) ? { kind: 'key_expired', id } : undefined
}

/** A key to bind. `resourceId`: the resource that the response names if the key has expired. */
export type KeyUse = {
  readonly idFromKey: Id<IdPrefix>
  readonly resourceId: string
  readonly idempotencyRecord: IdempotencyRecord
}

const keyStreamOf = ({ idFromKey }: KeyUse): KeyBindingId => withPrefix('bnd', idFromKey)

/** Binds the key to this request; returns the conflict when the key belongs to another one. */
export const recordKey = async (ledger: Ledger, key: KeyUse, context: Context): Promise<KeyConflict | undefined> => {
  const command = { type: 'BindKey' as const, claim: key.idempotencyRecord }
  const handled = await handle(ledger, keyBindingEntity, keyStreamOf(key), { command, context, load: 'assume_empty' })
  if (!handled.ok || handled.state.status === 'none') throw new Error('A key was neither bound nor found bound.')
  return keyConflict(ledger, key.resourceId, key.idempotencyRecord, handled.state.claim)
}

/** As `recordKey`, for a request that will be refused: writes no binding. 'unbound' for a free key. */
export const recordedKeyConflict = async (
  ledger: Ledger,
  key: KeyUse,
): Promise<KeyConflict | 'unbound' | undefined> => {
  const { state } = await ledger.aggregates.load(keyBindingEntity, keyStreamOf(key))
  return state.status === 'none' ? 'unbound' : keyConflict(ledger, key.resourceId, key.idempotencyRecord, state.claim)
}
