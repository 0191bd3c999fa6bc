import { createHmac, createSecretKey, hash, type KeyObject } from 'node:crypto'
import type { IdempotencyRecord } from '../../streams/idempotencyRecord.ts'
import { type Id, type IdPrefix, idFromBytes } from '../../streams/ids.ts'
import type { JsonObject, World } from '../ports.ts'

/** Random and derived ids, canonical JSON, and the idempotency record of a request. */

const sha256 = (text: string): Buffer => hash('sha256', text, 'buffer')
const hexSha256 = (text: string): string => hash('sha256', text, 'hex')

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
 * The object or array with all members in canonical order; undefined where an object cannot have them in this order, or
 * where a member is not JSON. Integer-like names come first in every object, so that the first name tells whether there
 * is one.
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
    // The name __proto__ would set the prototype in place of a member.
    if (ordered === undefined || name === '__proto__') return undefined
    copy[name] = ordered
  }
  return copy
}

const orderedMember = (value: unknown): unknown =>
  value !== null && typeof value === 'object' ? inCanonicalOrder(value) : value

/**
 * Canonical JSON (RFC 8785): members sorted by UTF-16 code units, no spaces. A sorted copy is written at once, which
 * takes a third of the time; objects with names such as "10", which JavaScript puts first, are written member by
 * member.
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

/**
 * A UUID (version 8, RFC 9562) for the event that a command appends at this revision of the aggregate `id`. A repeated
 * append has the same event ids; a later step of the same command on the same stream has others.
 */
export const eventIdOf = (commandId: string, id: string, revision: bigint): string => {
  return uuidOf(hexSha256(`${commandId}/${id}/${revision}`), '8', 'a')
}

export type KeyScope = { tenant: string; subject: string; client: string; operation: string }

/**
 * An idempotency key in its scope: tenant, caller and operation. A fresh token of the same caller does not change the
 * scope; another caller does.
 */
export type ScopedKey = {
  readonly scope: KeyScope
  readonly key: string
  /** The secret of the log (idSecret.ts). */
  readonly secret: Uint8Array
}

const imported = new WeakMap<Uint8Array, KeyObject>()

/** The key of a secret, which is imported once: that takes longer than a digest. */
const keyOf = (secret: Uint8Array): KeyObject => {
  const known = imported.get(secret) ?? createSecretKey(secret)
  imported.set(secret, known)
  return known
}

/** It cannot be computed without the secret. The first part says what is hashed, so that no two uses share a hash. */
const hmac = (secret: Uint8Array, parts: readonly string[]): Buffer =>
  createHmac('sha256', keyOf(secret)).update(JSON.stringify(parts)).digest()

const hmacOfKey = (use: string, { scope, key, secret }: ScopedKey): Buffer =>
  hmac(secret, [use, scope.tenant, scope.subject, scope.client, scope.operation, key])

/** The same key in the same scope always gives the same id; without the secret it cannot be computed. */
export const idOfKey = <P extends IdPrefix>(prefix: P, key: ScopedKey): Id<P> =>
  idFromBytes(prefix, hmacOfKey(prefix, key))

/** The keyed hash of the parts, as base64url: equal for equal parts, and not to be computed without the secret. */
export const keyedHash = (secret: Uint8Array, parts: readonly string[]): string =>
  hmac(secret, parts).toString('base64url')

/** An id that only holders of the secret can compute from the parts. */
export const keyedId = <P extends IdPrefix>(prefix: P, secret: Uint8Array, parts: readonly string[]): Id<P> =>
  idFromBytes(prefix, hmac(secret, [prefix, ...parts]))

/** The idempotency record of a request. `request` is the validated request without server-made values. */
export const newIdempotencyRecord = (key: ScopedKey, request: JsonObject, expiresAt: string): IdempotencyRecord => ({
  key_hash: hmacOfKey('idempotency key', key).toString('hex'),
  caller: { subject: key.scope.subject, client: key.scope.client },
  fingerprint: hexSha256(canonicalJson(request)),
  request: request as IdempotencyRecord['request'],
  expires_at: expiresAt,
})

const isObject = (value: unknown): value is Record<string, unknown> => value !== null && typeof value === 'object'

/** JSON pointers (RFC 6901) at which two requests differ: names only, never values. */
export const differingPointers = (a: unknown, b: unknown, at = ''): string[] => {
  if (!isObject(a) || !isObject(b)) return Object.is(a, b) ? [] : [at]
  const names = new Set([...Object.keys(a), ...Object.keys(b)])
  return [...names].flatMap(name =>
    differingPointers(a[name], b[name], `${at}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`),
  )
}
