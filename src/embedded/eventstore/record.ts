/** An event as the log keeps it. */
export type StoredRecord = {
  /** Its place in the log of all streams: where it begins, in bytes. Only positions of events mean anything. */
  readonly position: bigint
  readonly stream: string
  /** Its place in its stream, from zero; `TOMBSTONE_REVISION` for the tombstone. */
  readonly revision: bigint
  readonly id: string
  readonly type: string
  readonly isJson: boolean
  readonly data: Buffer
  readonly metadata: Buffer
  /** When it was committed: units of 100 ns since 1970. */
  readonly createdTicks: bigint
  /** The messages for its readers, by the form of the id. Only events that are kept in memory, to be sent to many, have it. */
  readonly messages?: Map<string, Buffer>
}

/** An event as a client proposes it. */
export type ProposedEvent = Pick<StoredRecord, 'id' | 'type' | 'isJson' | 'data' | 'metadata'>

export type Expected = bigint | 'no_stream' | 'any' | 'stream_exists'

/** The head of a stream that nothing was ever written to. */
export const NO_REVISION = -1n
/** EventStoreDB numbers the tombstone with the largest revision, so that nothing can follow it. */
export const TOMBSTONE_REVISION = 9_223_372_036_854_775_807n
/** Before this revision everything is truncated: this is how a stream is soft-deleted. */
export const SOFT_DELETED_BEFORE = TOMBSTONE_REVISION

const TICKS_PER_MILLISECOND = 10_000n

export const ticksOf = (epochMs: number): bigint => BigInt(epochMs) * TICKS_PER_MILLISECOND

/** The stream that holds the metadata of `stream`. */
export const metastreamOf = (stream: string): string => `$$${stream}`
export const isMetastream = (stream: string): boolean => stream.startsWith('$$')
/** The reverse of `metastreamOf`. */
export const originalOf = (metastream: string): string => metastream.slice(2)

/** An event of the real server's log: a frame of so many bytes around the stream's name, the type, data and metadata. */
const FRAME_BYTES = 90

/** Where the event behind this one begins. Positions are byte offsets, as in the real server, so nothing can count by them. */
export const endOf = (record: StoredRecord): bigint =>
  record.position + BigInt(FRAME_BYTES + Buffer.byteLength(record.stream) + sizeOf(record))

export const sizeOf = (event: ProposedEvent): number =>
  event.data.length + event.metadata.length + Buffer.byteLength(event.type)
