import type { IdempotencyRecord } from '../../streams/idempotencyRecord.ts'
import type { AnyEvent } from '../../streams/decider.ts'
import type { Recorded } from '../../streams/envelope.ts'
import type { Id, IdPrefix, KeyBindingId } from '../../streams/ids.ts'
import { withPrefix } from '../../streams/ids.ts'
import { keyBindingEntity } from './entities.ts'
import { type Context, handle, type Ledger } from './commandHandler.ts'
import { differingPointers } from './identifiers.ts'

/** Idempotency keys: the claim that a key leaves in the log, conflicts of a reused key, and bindings on streams of their own. */

/** Why a request may not use its key: another request has it, or the first use is too long ago. */
export type KeyConflict =
  /** JSON pointers (RFC 6901) at which the two requests differ. */
  | { readonly kind: 'key_reused'; readonly pointers: readonly string[] }
  | { readonly kind: 'key_expired'; readonly id: string }

/** The claim that the first event of a stream carries; undefined where the stream began without a key. */
export const idempotencyRecordIn = (history: readonly Recorded<AnyEvent>[]): IdempotencyRecord | undefined => {
  const data = history[0]?.event.data
  return data && 'claim' in data ? ((data.claim as IdempotencyRecord | null) ?? undefined) : undefined
}

/**
 * The conflict of a key that was used before; undefined when this is the same request again, in time: then its effect is
 * that of the first request as well.
 */
export const keyConflict = (
  { world, noteEffect }: Ledger,
  id: string,
  claim: IdempotencyRecord,
  recorded: IdempotencyRecord | undefined,
): KeyConflict | undefined => {
  if (recorded === undefined || recorded.fingerprint !== claim.fingerprint)
    return { kind: 'key_reused', pointers: differingPointers(recorded?.request ?? {}, claim.request) }
  noteEffect()
  return Date.parse(recorded.expires_at) <= world.now() ? { kind: 'key_expired', id } : undefined
}

/** The key of a request: `derived` is the id that was derived from it, `about` the resource that its answer names. */
export type BoundKey = { readonly derived: Id<IdPrefix>; readonly about: string; readonly claim: IdempotencyRecord }

const bindingOf = ({ derived }: BoundKey): KeyBindingId => withPrefix('bnd', derived)

/** Binds the key to this request; returns the conflict when the key belongs to another one. */
export const bindKey = async (ledger: Ledger, key: BoundKey, context: Context): Promise<KeyConflict | undefined> => {
  const command = { type: 'BindKey' as const, claim: key.claim }
  const bound = await handle(ledger, keyBindingEntity, bindingOf(key), { command, context, isNew: true })
  if (!bound.ok || bound.state.status === 'none') throw new Error('A key was neither bound nor found bound.')
  return keyConflict(ledger, key.about, key.claim, bound.state.claim)
}

/** The conflict of a request that will be refused anyway: it binds nothing, and a free key is 'unbound'. */
export const boundKeyConflict = async (ledger: Ledger, key: BoundKey): Promise<KeyConflict | 'unbound' | undefined> => {
  const { state } = await ledger.aggregates.load(keyBindingEntity, bindingOf(key))
  return state.status === 'none' ? 'unbound' : keyConflict(ledger, key.about, key.claim, state.claim)
}
