import { z } from 'zod'

/** Ids of all kinds: a prefix and 26 characters. */

/** Twenty-six characters of Crockford's base 32, the alphabet of a ULID. */
export const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const SUFFIX = /^[0-9A-HJKMNP-TV-Z]{26}$/

/**
 * All kinds of ids by prefix; `ref`, `rfd`, `acc`, `man`, `ten`, `bnd`, `per`, `prk`, `sec` and `voc` occur in no route, `ent` names
 * no stream, and `prs` and `prf` name personal texts (src/personalTexts/personalTexts.ts).
 */
export const ID_PREFIXES = [
  'ord',
  'inv',
  'pay',
  'op',
  'sub',
  'key',
  'ref',
  'rfd',
  'acc',
  'man',
  'ten',
  'bnd',
  'sec',
  'ent',
  'per',
  'prk',
  'voc',
  'prs',
  'prf',
] as const
export type IdPrefix = (typeof ID_PREFIXES)[number]
export type Id<P extends IdPrefix> = `${P}_${string}`

export type OrderId = Id<'ord'>
export type InvoiceId = Id<'inv'>
export type PaymentId = Id<'pay'>
export type OperationId = Id<'op'>
export type ReferenceId = Id<'ref'>
export type RefundId = Id<'rfd'>
export type ApiKeyId = Id<'key'>
export type ManifestId = Id<'man'>
export type SubscriptionId = Id<'sub'>
export type KeyBindingId = Id<'bnd'>
export type EntryId = Id<'ent'>
export type PeriodId = Id<'per'>

/** A pattern for ids with this prefix, for contracts. */
export const idPattern = (prefix: IdPrefix): RegExp => new RegExp(`^${prefix}_${SUFFIX.source.slice(1)}`)

/** A schema that accepts exactly the ids with this prefix. */
export const idSchema = <P extends IdPrefix>(prefix: P): z.ZodType<Id<P>, Id<P>> =>
  z.templateLiteral([`${prefix}_`, z.string().regex(SUFFIX)]) as z.ZodType<Id<P>, Id<P>>

export const isId = <P extends IdPrefix>(prefix: P, text: string): text is Id<P> =>
  text.startsWith(`${prefix}_`) && SUFFIX.test(text.slice(prefix.length + 1))

/**
 * An id from 17 bytes: 26 characters carry 130 bits, so the last six bits are dropped. Random bytes give a random
 * id, the first bytes of a hash a derived one.
 */
export const idFromBytes = <P extends IdPrefix>(prefix: P, bytes: Uint8Array): Id<P> => {
  let bits = 0
  let value = 0
  let suffix = ''
  for (const byte of bytes) {
    value = (value << 8) | byte
    for (bits += 8; bits >= 5 && suffix.length < 26; bits -= 5) suffix += CROCKFORD[(value >>> (bits - 5)) & 31]
    value &= (1 << bits) - 1
  }
  if (suffix.length < 26) throw new RangeError('An id needs at least 17 bytes.')
  return `${prefix}_${suffix}`
}

/** Changes the prefix and keeps the 26 characters, so the operation of a payment is found without a look-up. */
export const withPrefix = <P extends IdPrefix>(prefix: P, id: Id<IdPrefix>): Id<P> =>
  `${prefix}_${id.slice(id.indexOf('_') + 1)}`
