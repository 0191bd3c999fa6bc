import type { StoredRecord } from './record.ts'

/**
 * The insert of a commit as one message to Postgres: values in binary form and all steps of the statement in one write. The
 * driver would write each array as text, and each step by itself.
 */

/** The name of the prepared statement. */
export const INSERT_NAME = 'insert_events'

/** Types of Postgres by their number in `pg_type`. */
const OID = { bool: 16, bytea: 17, int8: 20, text: 25, uuid: 2950 } as const
const INT2_BYTES = 2
const INT4_BYTES = 4
const INT8_BYTES = 8
const UUID_BYTES = 16
/** The longest form of a character of a string, in UTF-8. */
const CHARACTER_BYTES_MAX = 3
const BINARY = 1
const PARAMETERS = 10

const ARRAYS = PARAMETERS - 1
/** Dimensions, the presence of nulls, type, length and lower bound. */
const ARRAY_HEAD_BYTES = 5 * INT4_BYTES
/** `Execute` of the unnamed portal without a limit of rows, and `Sync`. */
const EXECUTE_AND_SYNC = Buffer.from('E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04', 'latin1')
/** `Bind` of the statement to the unnamed portal, before its values: its format is that of all values. */
const BIND = Buffer.from(`B\0\0\0\0\0${INSERT_NAME}\0\0\x01\0${String.fromCharCode(BINARY)}`, 'latin1')
const LENGTH_AT = 1
/** A statement without rows has no formats of columns. */
const NO_FORMATS_BYTES = INT2_BYTES

/** The chunk of a larger message is not kept for the next one. */
const CHUNK_BYTES = 64 * 1024

/** At least the size of the message. */
const sizeBound = (records: readonly StoredRecord[], assumed: ReadonlySet<string>): number => {
  const fixed = BIND.length + INT2_BYTES + ARRAYS * (INT4_BYTES + ARRAY_HEAD_BYTES) + INT4_BYTES + INT8_BYTES
  let bytes = fixed + NO_FORMATS_BYTES + EXECUTE_AND_SYNC.length
  for (const { stream, type, data, metadata } of records) {
    bytes += ARRAYS * INT4_BYTES + 2 * INT8_BYTES + UUID_BYTES + 1 + data.length + metadata.length
    bytes += CHARACTER_BYTES_MAX * (stream.length + type.length)
  }
  for (const name of assumed) bytes += INT4_BYTES + CHARACTER_BYTES_MAX * name.length
  return bytes
}

/** Writes the insert messages of one session. They share a chunk of memory, so each is valid until the next one is written. */
export class InsertWriter {
  private readonly kept = Buffer.allocUnsafe(CHUNK_BYTES)
  private bytes = this.kept
  private at = 0

  /** The message that inserts the events, unless one of the streams `assumed` to be new exists. */
  message(records: readonly StoredRecord[], assumed: ReadonlySet<string>): Buffer {
    const bound = sizeBound(records, assumed)
    this.bytes = bound > CHUNK_BYTES ? Buffer.allocUnsafe(bound) : this.kept
    this.at = BIND.copy(this.bytes)
    this.at = this.bytes.writeInt16BE(PARAMETERS, this.at)
    this.columns(records)
    this.int4(INT8_BYTES)
    this.int8(records[0]?.createdTicks ?? 0n)
    this.array(OID.text, assumed, name => this.text(name))
    this.at = this.bytes.writeInt16BE(0, this.at)
    this.bytes.writeInt32BE(this.at - LENGTH_AT, LENGTH_AT)
    this.at += EXECUTE_AND_SYNC.copy(this.bytes, this.at)
    const message = this.bytes.subarray(0, this.at)
    this.bytes = this.kept
    return message
  }

  private columns(records: readonly StoredRecord[]): void {
    this.array(OID.int8, records, ({ position }) => this.int8(position))
    this.array(OID.text, records, ({ stream }) => this.text(stream))
    this.array(OID.int8, records, ({ revision }) => this.int8(revision))
    this.array(OID.uuid, records, ({ id }) => this.uuid(id))
    this.array(OID.text, records, ({ type }) => this.text(type))
    this.array(OID.bool, records, ({ isJson }) => this.bool(isJson))
    this.array(OID.bytea, records, ({ data }) => this.bytea(data))
    this.array(OID.bytea, records, ({ metadata }) => this.bytea(metadata))
  }

  /** An array, each of whose elements `write` writes; its length stands before it, as before each element. */
  private array<T>(oid: number, elements: Iterable<T>, write: (element: T) => void): void {
    const head = this.at
    this.at += INT4_BYTES + ARRAY_HEAD_BYTES
    let count = 0
    for (const element of elements) {
      this.withLength(() => write(element))
      count += 1
    }
    // An array without elements has no dimensions.
    if (count === 0) this.at -= 2 * INT4_BYTES
    const end = this.at
    this.at = head
    for (const value of [end - head - INT4_BYTES, count === 0 ? 0 : 1, 0, oid]) this.int4(value)
    if (count > 0) for (const value of [count, 1]) this.int4(value)
    this.at = end
  }

  private withLength(write: () => void): void {
    const head = this.at
    this.at += INT4_BYTES
    write()
    this.bytes.writeInt32BE(this.at - head - INT4_BYTES, head)
  }

  private int4(value: number): void {
    this.at = this.bytes.writeInt32BE(value, this.at)
  }

  private int8(value: bigint): void {
    this.at = this.bytes.writeBigInt64BE(value, this.at)
  }

  private text(value: string): void {
    this.at += this.bytes.write(value, this.at)
  }

  /** Ids are canonical: the writers of the log accept no other. */
  private uuid(id: string): void {
    this.at += this.bytes.write(id.replaceAll('-', ''), this.at, 'hex')
  }

  private bool(value: boolean): void {
    this.at = this.bytes.writeUInt8(value ? 1 : 0, this.at)
  }

  private bytea(value: Buffer): void {
    this.at += value.copy(this.bytes, this.at)
  }
}
