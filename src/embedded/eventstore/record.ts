export type StoredRecord = {
  /** The byte offset of its beginning in the log of all streams. Only positions of events are meaningful. */
  readonly position: bigint
  readonly stream: string
  /** Its number in its stream, from zero; `TOMBSTONE_REVISION` for the tombstone. */
  readonly revision: bigint
  readonly id: string
  readonly type: string
  readonly isJson: boolean
  readonly data: Buffer
  readonly metadata: Buffer
  /** The time of its commit in units of 100 ns since 1970. */
  readonly createdTicks: bigint
}

/** An event as proposed by a client. */
export type ProposedEvent = Pick<StoredRecord, 'id' | 'type' | 'isJson' | 'data' | 'metadata'>

export type Expected = bigint | 'no_stream' | 'any' | 'stream_exists'

/** The head of a stream without events. */
export const NO_REVISION = -1n
/** EventStoreDB gives the tombstone the largest revision, so nothing can follow it. */
export const TOMBSTONE_REVISION = 9_223_372_036_854_775_807n
/** Truncates everything, which is how a stream is soft-deleted. */
export const SOFT_DELETED_BEFORE = TOMBSTONE_REVISION

const TICKS_PER_MILLISECOND = 10_000n

export const ticksOf = (epochMs: number): bigint => BigInt(epochMs) * TICKS_PER_MILLISECOND

/** The stream with the metadata of `stream`. */
export const metastreamOf = (stream: string): string => `$$${stream}`
export const isMetastream = (stream: string): boolean => stream.startsWith('$$')
export const originalOf = (metastream: string): string => metastream.slice(2)

/** The size of an event's frame in the real server's log, without the stream's name, the type, data and metadata. */
const FRAME_BYTES = 90

/** Positions are byte offsets, as in the real server, so they cannot be used for counting. */
export const endOf = (record: StoredRecord): bigint =>
  record.position + BigInt(FRAME_BYTES + Buffer.byteLength(record.stream) + sizeOf(record))

export const sizeOf = (event: ProposedEvent): number =>
  event.data.length + event.metadata.length + Buffer.byteLength(event.type)

/** The heap that an event takes beside its payload: measured, and rounded up. */
const RECORD_BYTES = 900

export const memoryOf = (record: StoredRecord): number => RECORD_BYTES + sizeOf(record)
