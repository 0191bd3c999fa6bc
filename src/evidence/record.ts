import { canonicalJson } from '../lib/identifiers.ts'
import type { Json, StoredEvent } from '../ports.ts'
import { leafHash } from './merkle.ts'

/** The leaf of an event: a JSON document (RFC 8785) of every field that the event store has. README.md describes it. */

export const RECORD_VERSION = 1

const JSON_TYPE = 'application/json'
const TICKS_PER_MILLISECOND = 10_000n
const TICK_DIGITS = 4

/** The time of a commit, which the store counts in units of 100 ns since 1970, as RFC 3339. */
const timeOf = (ticks: bigint): string => {
  const fraction = (ticks % TICKS_PER_MILLISECOND).toString().padStart(TICK_DIGITS, '0')
  return new Date(Number(ticks / TICKS_PER_MILLISECOND)).toISOString().replace('Z', `${fraction}Z`)
}

/** The value of a JSON text whose bytes follow from the value; undefined for any other bytes. */
const valueOf = (bytes: Uint8Array): Json | undefined => {
  try {
    const value = JSON.parse(Buffer.from(bytes).toString('utf8')) as Json
    return Buffer.from(JSON.stringify(value)).equals(bytes) ? value : undefined
  } catch {
    return undefined
  }
}

/** `data` has the JSON value where its text can be written again byte by byte, and `data_hex` has the bytes where it cannot. */
const contentOf = (name: 'data' | 'metadata', bytes: Uint8Array): string => {
  const value = valueOf(bytes)
  return value === undefined
    ? `"${name}_hex":"${Buffer.from(bytes).toString('hex')}"`
    : `"${name}":${canonicalJson(value)}`
}

type StoredBytes = NonNullable<StoredEvent['bytes']>

/** A store in memory has values instead of bytes. */
const bytesOf = ({ bytes, data, metadata, storedAt }: StoredEvent): StoredBytes =>
  bytes ?? {
    data: Buffer.from(JSON.stringify(data)),
    metadata: Buffer.from(JSON.stringify(metadata)),
    contentType: JSON_TYPE,
    createdTicks: BigInt(Date.parse(storedAt)) * TICKS_PER_MILLISECOND,
  }

/** The text of the leaf. The members are in their canonical order. */
const canonicalText = (event: StoredEvent): string => {
  const { data, metadata, contentType, createdTicks } = bytesOf(event)
  const { id, position, revision, stream, type } = event
  return (
    `{"content_type":${JSON.stringify(contentType)},"created":"${timeOf(createdTicks)}",` +
    `${contentOf('data', data)},"id":${JSON.stringify(id)},` +
    `${contentOf('metadata', metadata)},"position":"${position}","revision":"${revision}",` +
    `"stream":${JSON.stringify(stream)},"type":${JSON.stringify(type)},"v":${RECORD_VERSION}}`
  )
}

/** The bytes of the leaf, for an event that was read with its bytes. */
export const canonicalRecord = (event: StoredEvent): Buffer => Buffer.from(canonicalText(event))

/** One leaf of the tree, without its index. */
export type Leaf = {
  readonly position: bigint
  readonly eventId: string
  readonly stream: string
  readonly revision: bigint
  /** Null where the metadata names none. */
  readonly tenant: string | null
  readonly hash: Buffer
}

export const tenantOf = ({ metadata }: Pick<StoredEvent, 'metadata'>): string | null => {
  const tenant = (metadata as { readonly tenant?: unknown } | null)?.tenant
  return typeof tenant === 'string' ? tenant : null
}

export const leafOf = (event: StoredEvent): Leaf => ({
  position: event.position,
  eventId: event.id,
  stream: event.stream,
  revision: event.revision,
  tenant: tenantOf(event),
  hash: leafHash(canonicalRecord(event)),
})
