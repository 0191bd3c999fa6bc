import type { Claim } from '../../streams/claim.ts'
import type { Id, IdPrefix, KeyBindingId } from '../../streams/ids.ts'
import { withPrefix } from '../../streams/ids.ts'
import { type KeyConflict, keyConflict } from './creation.ts'
import { keyBindingEntity } from './entities.ts'
import { type Context, handle, type Ledger } from './handle.ts'

/** The key of a request: `derived` is the id that was derived from it, `about` the resource that its answer names. */
export type BoundKey = { readonly derived: Id<IdPrefix>; readonly about: string; readonly claim: Claim }

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
