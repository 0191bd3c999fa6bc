import { createHmac, createSecretKey, hash, type KeyObject } from 'node:crypto'
import { type Id, type IdPrefix, idFromBytes } from '../../streams/ids.ts'
import type { World } from '../ports.ts'

const sha256 = (text: string): Buffer => hash('sha256', text, 'buffer')
export const hexSha256 = (text: string): string => hash('sha256', text, 'hex')

/** Canonical JSON, member by member. */
const writtenByMember = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(item => writtenByMember(item)).join(',')}]`
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  const members = Object.entries(value).filter(([, inner]) => inner !== undefined)
  const sorted = members.toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `{${sorted.map(([name, inner]) => `${JSON.stringify(name)}:${writtenByMember(inner)}`).join(',')}}`
}

/** Up to so many names are sorted by insertion, which is faster for few. */
const INSERTION_MAX = 32

/** Sorts in place, by UTF-16 code units. */
const sortNames = (names: string[]): string[] => {
  if (names.length > INSERTION_MAX) return names.sort()
  for (let next = 1; next < names.length; next += 1) {
    const name = names[next] as string
    let at = next
    for (; at > 0 && (names[at - 1] as string) > name; at -= 1) names[at] = names[at - 1] as string
    names[at] = name
  }
  return names
}

const startsWithDigit = (name: string | undefined): boolean => name !== undefined && name >= '0' && name < ':'

/**
 * Undefined where an object cannot have this order, or a member is not JSON. Integer-like names come first in every
 * object, so the first name tells.
 */
const inCanonicalOrder = (value: object): object | undefined => {
  if (Array.isArray(value)) {
    const items = value.map(orderedMember)
    return items.includes(undefined) ? undefined : items
  }
  const names = Object.keys(value)
  if (startsWithDigit(names[0])) return undefined
  const copy: Record<string, unknown> = {}
  for (const name of sortNames(names)) {
    const ordered = orderedMember((value as Record<string, unknown>)[name])
    // The name __proto__ would set the prototype instead of a member.
    if (ordered === undefined || name === '__proto__') return undefined
    copy[name] = ordered
  }
  return copy
}

const orderedMember = (value: unknown): unknown =>
  value !== null && typeof value === 'object' ? inCanonicalOrder(value) : value

/**
 * RFC 8785: members sorted by UTF-16 code units, no spaces. A sorted copy is written at once, in a third of the time
 * (the p99 of others beside the largest orders: 40 instead of 65 ms); names such as "10", which JavaScript puts first,
 * need more.
 */
export const canonicalJson = (value: unknown): string => {
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  const ordered = inCanonicalOrder(value)
  return ordered === undefined ? writtenByMember(value) : JSON.stringify(ordered)
}

export const randomId = <P extends IdPrefix>(prefix: P, world: World): Id<P> =>
  idFromBytes(prefix, world.randomBytes(17))

/** A deterministic id. The parts are encoded as JSON, because a plain separator could occur within a part. */
export const derivedId = <P extends IdPrefix>(prefix: P, ...parts: readonly string[]): Id<P> =>
  idFromBytes(prefix, sha256(JSON.stringify([prefix, ...parts])))

const UUID_BYTES = 16

const uuidOf = (hex: string, version: string, variant: string): string =>
  `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${version}${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`

/** A random UUID (version 4, RFC 9562). */
export const newUuid = (world: Pick<World, 'randomBytes'>): string =>
  uuidOf(Buffer.from(world.randomBytes(UUID_BYTES)).toString('hex'), '4', 'a')

/** A UUID (version 8) of the event at this revision: a repeated append has the same ids, a later step has others. */
export const eventIdOf = (commandId: string, id: string, revision: bigint): string => {
  return uuidOf(hexSha256(`${commandId}/${id}/${revision}`), '8', 'a')
}

const imported = new WeakMap<Uint8Array, KeyObject>()

/** The key of a secret, which is imported once: that takes longer than a digest. */
const keyOf = (secret: Uint8Array): KeyObject => {
  const key = imported.get(secret) ?? createSecretKey(secret)
  imported.set(secret, key)
  return key
}

/** It cannot be computed without the secret. The first part says what is hashed, so no two uses share a hash. */
export const hmac = (secret: Uint8Array, parts: readonly string[]): Buffer =>
  createHmac('sha256', keyOf(secret)).update(JSON.stringify(parts)).digest()

/** The keyed hash of the parts, as base64url: equal for equal parts, and not to be computed without the secret. */
export const keyedHash = (secret: Uint8Array, parts: readonly string[]): string =>
  hmac(secret, parts).toString('base64url')

/** An id that only holders of the secret can compute from the parts. */
export const keyedId = <P extends IdPrefix>(prefix: P, secret: Uint8Array, parts: readonly string[]): Id<P> =>
  idFromBytes(prefix, hmac(secret, [prefix, ...parts]))
