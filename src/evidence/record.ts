import { canonicalJson } from '../commands/identifiers.ts'
import type { Json, StoredEvent } from '../ports.ts'
import { leafHash } from './merkle.ts'

/**
 * The canonical bytes of a stored event, which are the leaf of the tree: one JSON document (RFC 8785) with every field that
 * the event store has of the event. README.md describes the members.
 */

export const RECORD_VERSION = 1

/** `data` is the JSON value where its text can be written again byte by byte, and `data_hex` has the bytes where it cannot. */
type Content<N extends 'data' | 'metadata'> = { readonly [M in N]: Json } | { readonly [M in `${N}_hex`]: string }

export type EventRecord = {
  readonly v: typeof RECORD_VERSION
  /** `application/json`, or that of bytes. */
  readonly content_type: string
  /** The time of the store with all of its seven digits. */
  readonly created: string
  readonly id: string
  readonly position: string
  readonly revision: string
  readonly stream: string
  readonly type: string
} & Content<'data'> &
  Content<'metadata'>

const JSON_TYPE = 'application/json'
const TICKS_PER_MILLISECOND = 10_000n
const TICK_DIGITS = 4

/** The time of a commit, which the store counts in units of 100 ns since 1970, as RFC 3339. */
const timeOf = (ticks: bigint): string => {
  const fraction = (ticks % TICKS_PER_MILLISECOND).toString().padStart(TICK_DIGITS, '0')
  return new Date(Number(ticks / TICKS_PER_MILLISECOND)).toISOString().replace('Z', `${fraction}Z`)
}

/** The value of a JSON text whose bytes follow from the value; undefined for any other bytes. */
const valueOf = (bytes: Buffer): Json | undefined => {
  try {
    const value = JSON.parse(bytes.toString('utf8')) as Json
    return bytes.equals(Buffer.from(JSON.stringify(value))) ? value : undefined
  } catch {
    return undefined
  }
}

const contentOf = <N extends 'data' | 'metadata'>(name: N, bytes: Uint8Array): Content<N> => {
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const value = valueOf(all)
  return (value === undefined ? { [`${name}_hex`]: all.toString('hex') } : { [name]: value }) as Content<N>
}

type StoredBytes = NonNullable<StoredEvent['bytes']>

/** A store in memory has values in place of bytes. */
const bytesOf = ({ bytes, data, metadata, storedAt }: StoredEvent): StoredBytes =>
  bytes ?? {
    data: Buffer.from(JSON.stringify(data)),
    metadata: Buffer.from(JSON.stringify(metadata)),
    contentType: JSON_TYPE,
    createdTicks: BigInt(Date.parse(storedAt)) * TICKS_PER_MILLISECOND,
  }

/** The record of an event that was read with its bytes. */
export const recordOf = (event: StoredEvent): EventRecord => {
  const { data, metadata, contentType, createdTicks } = bytesOf(event)
  return {
    v: RECORD_VERSION,
    content_type: contentType,
    created: timeOf(createdTicks),
    id: event.id,
    position: event.position.toString(),
    revision: event.revision.toString(),
    stream: event.stream,
    type: event.type,
    ...contentOf('data', data),
    ...contentOf('metadata', metadata),
  }
}

/** The bytes of the leaf. */
export const canonicalRecord = (event: StoredEvent): Buffer => Buffer.from(canonicalJson(recordOf(event)))

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
