import { createHash, type Hash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'

/** Writes a file of lines in pieces, with its length and its SHA-256. */

const BUFFER_BYTES = 256 * 1024
const OWNER_ONLY_FILE = 0o600

export type Written = { readonly sha256: string; readonly bytes: number }

export class LineWriter {
  private readonly file: FileHandle
  private readonly hash: Hash = createHash('sha256')
  private parts: Buffer[] = []
  private waiting = 0
  private bytes = 0

  private constructor(file: FileHandle) {
    this.file = file
  }

  /** Replaces a file of an unfinished export. */
  static async open(folder: string, name: string): Promise<LineWriter> {
    return new LineWriter(await open(join(folder, name), 'w', OWNER_ONLY_FILE))
  }

  async write(text: string | Buffer): Promise<void> {
    const part = Buffer.from(text)
    this.parts.push(part)
    this.waiting += part.length
    if (this.waiting >= BUFFER_BYTES) await this.flush()
  }

  /** On the disk when it resolves. */
  async end(): Promise<Written> {
    await this.flush()
    await this.file.sync()
    await this.file.close()
    return { sha256: this.hash.digest('hex'), bytes: this.bytes }
  }

  abandon(): Promise<void> {
    return this.file.close().catch(() => undefined)
  }

  private async flush(): Promise<void> {
    const piece = Buffer.concat(this.parts)
    this.parts = []
    this.waiting = 0
    this.bytes += piece.length
    this.hash.update(piece)
    await this.file.writeFile(piece)
  }
}
