import { LENGTH_AT, PREFIX_BYTES } from './framing.ts'

/** A minimal protobuf encoder: the general library would cost several times as much as the rest of a short read. */

const VARINT_WIRE = 0
const BYTES_WIRE = 2
const UINT64_BITS = 64
const CONTINUES = 0x80
const CHUNK_BYTES = 64 * 1024
/** The chunk of a larger message is not kept for the next one. */
const CHUNK_KEPT_BYTES_MAX = 1024 * 1024

const tag = (field: number, wire: number): number => (field << 3) | wire

const varintLength = (value: number): number => {
  let length = 1
  for (let rest = value; rest >= CONTINUES; rest = Math.floor(rest / CONTINUES)) length += 1
  return length
}

/** From the last byte to the first, so the length of a nested message is known. Messages share chunks of memory. */
export class MessageWriter {
  private chunk = Buffer.allocUnsafe(CHUNK_BYTES)
  private at = CHUNK_BYTES
  private end = CHUNK_BYTES

  begin(): void {
    if (this.chunk.length > CHUNK_KEPT_BYTES_MAX) {
      this.chunk = Buffer.allocUnsafe(CHUNK_BYTES)
      this.at = CHUNK_BYTES
    }
    this.end = this.at
  }

  message(): Buffer {
    return this.chunk.subarray(this.at, this.end)
  }

  /** Discards everything written since `size` had this value. */
  discard(since: number): void {
    this.at += this.size() - since
  }

  /** The present size of the message, the start of fields to be nested. */
  size(): number {
    return this.end - this.at
  }

  /** Makes a nested message of everything written since `size` had this value; also of nothing. */
  nested(field: number, since: number): void {
    this.head(field, this.size() - since)
  }

  /** Makes a gRPC message of everything written since then. The next one is written in front of it. */
  framed(since: number): void {
    const length = this.size() - since
    this.reserve(PREFIX_BYTES)
    this.chunk[this.at] = 0
    this.chunk.writeUInt32BE(length, this.at + LENGTH_AT)
  }

  /** A 64-bit integer, signed or not; zero is omitted, as in proto3. */
  integer(field: number, value: bigint): void {
    if (value !== 0n) this.presentInteger(field, value)
  }

  /** The same for a member of a oneof, whose zero is not omitted. */
  presentInteger(field: number, value: bigint): void {
    if (value >= 0n && value <= Number.MAX_SAFE_INTEGER) this.varint(Number(value))
    else this.largeVarint(value)
    this.varint(tag(field, VARINT_WIRE))
  }

  /** Empty bytes are omitted. */
  bytes(field: number, value: Buffer): void {
    if (value.length === 0) return
    this.raw(value)
    this.head(field, value.length)
  }

  /** Fields that are encoded already. */
  raw(fields: Buffer): void {
    this.reserve(fields.length)
    fields.copy(this.chunk, this.at)
  }

  /** Empty text is omitted. */
  text(field: number, value: string): void {
    if (value === '') return
    const length = Buffer.byteLength(value)
    this.reserve(length)
    this.chunk.write(value, this.at)
    this.head(field, length)
  }

  /** One entry of a map from text to text. */
  entry(field: number, key: string, value: string): void {
    const since = this.size()
    this.text(2, value)
    this.text(1, key)
    this.nested(field, since)
  }

  private head(field: number, length: number): void {
    this.varint(length)
    this.varint(tag(field, BYTES_WIRE))
  }

  private varint(value: number): void {
    this.reserve(varintLength(value))
    let at = this.at
    let rest = value
    for (; rest >= CONTINUES; rest = Math.floor(rest / CONTINUES)) this.chunk[at++] = (rest % CONTINUES) | CONTINUES
    this.chunk[at] = rest
  }

  /** Integers beyond a double: the halves of an id, and the revision of a tombstone. */
  private largeVarint(value: bigint): void {
    const digits: number[] = []
    let rest = BigInt.asUintN(UINT64_BITS, value)
    for (; rest > 0x7fn; rest >>= 7n) digits.push(Number(rest & 0x7fn) | CONTINUES)
    digits.push(Number(rest))
    this.reserve(digits.length)
    this.chunk.set(digits, this.at)
  }

  /** Moves the write position; the message moves to a new chunk if there is not enough space. */
  private reserve(length: number): void {
    if (this.at < length) {
      const begun = this.chunk.subarray(this.at, this.end)
      const size = Math.max(CHUNK_BYTES, 2 * (begun.length + length))
      this.chunk = Buffer.allocUnsafeSlow(size)
      begun.copy(this.chunk, size - begun.length)
      this.at = size - begun.length
      this.end = size
    }
    this.at -= length
  }
}
