/** A decoder of protobuf messages that creates no objects but the values that are asked for. */

export const tagOf = (field: number, wire: (typeof WIRE)[keyof typeof WIRE]): number => (field << 3) | wire

export const WIRE = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const

const WIRE_MASK = 7
const CONTINUES = 0x80
const DIGIT_BITS = 7
const DIGIT = 0x7f
/** The number of 7-bit digits that a double holds exactly, and the number that 64 bits take. */
const EXACT_DIGITS = 7
const DIGITS_MAX = 10
const UINT64_BITS = 64

/** The bytes are not a message, or are truncated. */
export class Malformed extends Error {
  constructor(at: number) {
    super(`Malformed protobuf message at byte ${at}.`)
    this.name = 'Malformed'
  }
}

/** Reads the fields of a message in order, within the limits of the open message. */
export class ProtobufReader {
  private readonly from: Buffer
  private at = 0
  private end: number

  constructor(from: Buffer) {
    this.from = from
    this.end = from.length
  }

  hasMore(): boolean {
    return this.at < this.end
  }

  /** The tag of the next field, to be compared with `tagOf`. The field must then be read or skipped. */
  tag(): number {
    return this.size()
  }

  /** Opens the nested message and returns the value that `close` needs to continue after it. */
  open(): number {
    const outer = this.end
    this.end = this.endOfBytes()
    return outer
  }

  close(outer: number): void {
    this.at = this.end
    this.end = outer
  }

  uint64(): bigint {
    let value = 0
    let weight = 1
    for (let digits = 0; digits < EXACT_DIGITS; digits += 1) {
      const byte = this.byte()
      value += (byte & DIGIT) * weight
      if (byte < CONTINUES) return BigInt(value)
      weight *= CONTINUES
    }
    return this.restOfUint64(BigInt(value))
  }

  text(): string {
    const end = this.endOfBytes()
    const text = this.from.toString('utf8', this.at, end)
    this.at = end
    return text
  }

  /** A view of the field's bytes. */
  bytes(): Buffer {
    const end = this.endOfBytes()
    const bytes = this.from.subarray(this.at, end)
    this.at = end
    return bytes
  }

  /** Skips a field. Groups are deprecated, and refused. */
  skipField(tag: number): void {
    switch (tag & WIRE_MASK) {
      case WIRE.varint:
        return void this.uint64()
      case WIRE.bytes:
        return void (this.at = this.endOfBytes())
      case WIRE.fixed64:
        return void (this.at = this.endOf(8))
      case WIRE.fixed32:
        return void (this.at = this.endOf(4))
      default:
        throw new Malformed(this.at)
    }
  }

  private byte(): number {
    if (this.at >= this.end) throw new Malformed(this.at)
    return this.from[this.at++] as number
  }

  private restOfUint64(low: bigint): bigint {
    let value = low
    for (let digits = EXACT_DIGITS; digits < DIGITS_MAX; digits += 1) {
      const byte = this.byte()
      value |= BigInt(byte & DIGIT) << BigInt(digits * DIGIT_BITS)
      if (byte < CONTINUES) return BigInt.asUintN(UINT64_BITS, value)
    }
    throw new Malformed(this.at)
  }

  /** A tag or a length, nearly always one or two bytes. */
  private size(): number {
    const byte = this.byte()
    return byte < CONTINUES ? byte : this.restOfSize(byte & DIGIT)
  }

  private restOfSize(low: number): number {
    let value = low
    for (let weight = CONTINUES; weight <= Number.MAX_SAFE_INTEGER / CONTINUES; weight *= CONTINUES) {
      const byte = this.byte()
      value += (byte & DIGIT) * weight
      if (byte < CONTINUES) return value
    }
    throw new Malformed(this.at)
  }

  private endOfBytes(): number {
    return this.endOf(this.size())
  }

  private endOf(length: number): number {
    const end = this.at + length
    if (end > this.end) throw new Malformed(this.at)
    return end
  }
}
