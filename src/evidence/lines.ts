/** Lines of a file that is read as a stream: memory holds one line, however large the file is. */

export type Line = {
  /** From 1. */
  readonly number: number
  readonly bytes: Buffer
  /** `torn`: the file ends within the line. `too_long`: `bytes` has its beginning alone. */
  readonly flaw?: 'torn' | 'too_long'
}

/** EventStoreDB refuses appends beyond 1 MiB by default; hexadecimal doubles that. */
const LINE_BYTES_MAX = 64 * 1024 * 1024
const LINE_FEED = 0x0a

/** The line that is being read, whose parts are joined at its end. */
class Unfinished {
  private parts: Buffer[] = []
  private length = 0

  add(part: Buffer): void {
    this.length += part.length
    if (this.length <= LINE_BYTES_MAX) this.parts.push(part)
  }

  isEmpty(): boolean {
    return this.length === 0
  }

  /** The line, and an empty one from now on. */
  end(number: number, torn: boolean): Line {
    const bytes = this.parts.length === 1 ? (this.parts[0] as Buffer) : Buffer.concat(this.parts)
    const flaw = this.length > LINE_BYTES_MAX ? 'too_long' : torn ? 'torn' : undefined
    this.parts = []
    this.length = 0
    return { number, bytes, ...(flaw && { flaw }) }
  }
}

export async function* linesOf(source: AsyncIterable<Buffer>): AsyncGenerator<Line> {
  const line = new Unfinished()
  let number = 1
  for await (const chunk of source) {
    let from = 0
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, from)) {
      line.add(chunk.subarray(from, end))
      yield line.end(number, false)
      number += 1
      from = end + 1
    }
    if (from < chunk.length) line.add(chunk.subarray(from))
  }
  if (!line.isEmpty()) yield line.end(number, true)
}
