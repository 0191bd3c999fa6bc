import { createHmac, createSecretKey, hash, type KeyObject } from 'node:crypto'
import { type Id, type IdPrefix, idFromBytes } from '../../streams/ids.ts'
import type { World } from '../ports.ts'

/** Random, derived and keyed ids, and canonical JSON. */

const sha256 = (text: string): Buffer => hash('sha256', text, 'buffer')
export const hexSha256 = (text: string): string => hash('sha256', text, 'hex')

/** Canonical JSON (RFC 8785): members sorted by UTF-16 code units, no spaces. */
export const canonicalJson = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(item => canonicalJson(item)).join(',')}]`
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  const members = Object.entries(value).filter(([, inner]) => inner !== undefined)
  const sorted = members.toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `{${sorted.map(([name, inner]) => `${JSON.stringify(name)}:${canonicalJson(inner)}`).join(',')}}`
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
export const eventIdOf = (commandId: string, id: string, revision: bigint): string =>
  uuidOf(hexSha256(`${commandId}/${id}/${revision}`), '8', 'a')

const imported = new WeakMap<Uint8Array, KeyObject>()

/** The key of a secret, which is imported once: that takes 13 µs, for each of the three or four digests of a payment. */
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
