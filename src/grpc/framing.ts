/** The framing of gRPC ("gRPC over HTTP2"): in front of each message are a flag and the length of the message. */

/** A flag (compressed or not), and the length in four bytes. */
export const PREFIX_BYTES = 5
export const LENGTH_AT = 1

export const prefixed = (message: Uint8Array): Buffer => {
  const bytes = Buffer.alloc(PREFIX_BYTES + message.length)
  bytes.writeUInt32BE(message.length, LENGTH_AT)
  bytes.set(message, PREFIX_BYTES)
  return bytes
}

/** Divides received bytes into messages, independently of their division into chunks. */
export class MessageSplitter {
  private readonly messageBytesMax: number
  private held: Buffer[] = []
  private heldBytes = 0
  private neededBytes = PREFIX_BYTES

  constructor(messageBytesMax: number) {
    this.messageBytesMax = messageBytesMax
  }

  /** The bytes of an incomplete message are held. */
  isEmpty(): boolean {
    return this.heldBytes === 0
  }

  /** The messages that this chunk completes. Throws if one is compressed or too large. */
  messagesWith(chunk: Buffer): Buffer[] {
    this.held.push(chunk)
    this.heldBytes += chunk.length
    if (this.heldBytes < this.neededBytes) return []
    const bytes = this.held.length === 1 ? chunk : Buffer.concat(this.held, this.heldBytes)
    const messages: Buffer[] = []
    let at = 0
    for (; bytes.length - at >= PREFIX_BYTES; at += this.neededBytes) {
      this.neededBytes = PREFIX_BYTES + this.lengthAt(bytes, at)
      if (bytes.length - at < this.neededBytes) break
      messages.push(bytes.subarray(at + PREFIX_BYTES, at + this.neededBytes))
    }
    if (bytes.length - at < PREFIX_BYTES) this.neededBytes = PREFIX_BYTES
    this.held = at === bytes.length ? [] : [bytes.subarray(at)]
    this.heldBytes = bytes.length - at
    return messages
  }

  private lengthAt(bytes: Buffer, at: number): number {
    if (bytes[at] !== 0) throw new Error('A message is compressed, which was not asked for.')
    const length = bytes.readUInt32BE(at + LENGTH_AT)
    if (length > this.messageBytesMax) throw new Error(`A message of ${length} bytes is too large.`)
    return length
  }
}
