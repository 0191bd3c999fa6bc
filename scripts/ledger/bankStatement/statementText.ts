import { StatementError } from './statementLine.ts'

/** The text of a statement: UTF-8, with or without a byte order mark, in chunks. */

const LINE_FEED = 0x0a

const linesIn = (bytes: Uint8Array): number => bytes.reduce((lines, byte) => lines + (byte === LINE_FEED ? 1 : 0), 0)

/** The line, from 1, of the first bytes that are no UTF-8; the chunk begins on `line`. */
const faultyLine = (chunk: Uint8Array, line: number): number => {
  const text = new TextDecoder('utf-8').decode(chunk)
  const before = text.slice(0, text.indexOf('\ufffd'))
  return line + before.split('\n').length - 1
}

/** Decodes chunks of bytes. Throws a StatementError with the line for bytes that are no UTF-8. */
export const decoded = async function* (chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let line = 1
  const decode = (chunk: Uint8Array, isLast: boolean): string => {
    try {
      return decoder.decode(chunk, { stream: !isLast })
    } catch {
      throw new StatementError(isLast ? line : faultyLine(chunk, line), 'These bytes are no UTF-8.')
    }
  }
  for await (const chunk of chunks) {
    const text = decode(chunk, false)
    line += linesIn(chunk)
    if (text !== '') yield text
  }
  const rest = decode(new Uint8Array(), true)
  if (rest !== '') yield rest
}
