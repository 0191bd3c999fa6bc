import { type FileHandle, open, stat } from 'node:fs/promises'
import { StartupError, systemCode } from '../../../src/lib/startupError.ts'
import { readCamt053 } from './camt053.ts'
import { readCsvStatement } from './csvStatement.ts'
import { type StatementLine, StatementError } from './statementLine.ts'

/** A statement is read twice, to check all of it and to reconcile it, and is never held whole. */

const HEAD_CHARS_MAX = 4_096

/** The first line that is not empty, and all chunks again. */
const withHead = async (chunks: AsyncGenerator<string>): Promise<{ head: string; all: AsyncGenerator<string> }> => {
  let text = ''
  for (;;) {
    const { value, done } = await chunks.next()
    text += value ?? ''
    if (done === true || text.trimStart().includes('\n') || text.length > HEAD_CHARS_MAX) break
  }
  const all = async function* (): AsyncGenerator<string> {
    yield text
    yield* chunks
  }
  return { head: text.trimStart().split(/\r?\n/, 1)[0] ?? '', all: all() }
}

const LINE_FEED = 0x0a

const linesIn = (bytes: Uint8Array): number => bytes.reduce((lines, byte) => lines + (byte === LINE_FEED ? 1 : 0), 0)

/** The line, from 1, of the first bytes that are no UTF-8; the chunk begins on `line`. */
const faultyLine = (chunk: Uint8Array, line: number): number => {
  const text = new TextDecoder('utf-8').decode(chunk)
  const before = text.slice(0, text.indexOf('\ufffd'))
  return line + before.split('\n').length - 1
}

/** Decodes chunks of bytes. Throws a StatementError with the line for bytes that are no UTF-8. */
const decoded = async function* (chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
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

const CHUNK_BYTES = 65_536

const chunksOf = async function* (file: FileHandle): AsyncGenerator<Uint8Array> {
  for (let position = 0; ; ) {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(CHUNK_BYTES), 0, CHUNK_BYTES, position)
    if (bytesRead === 0) return
    position += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}

const readLines = async function* (file: FileHandle): AsyncGenerator<StatementLine> {
  const { head, all } = await withHead(decoded(chunksOf(file)))
  if (head === '') throw new StatementError(1, 'The file is empty.')
  yield* head.startsWith('<') ? readCamt053(all) : readCsvStatement(all, head)
}

const sizeAndTime = async (file: FileHandle): Promise<string> => {
  const { size, mtimeNs } = await file.stat({ bigint: true })
  return `${size} ${mtimeNs}`
}

const openFile = async (path: string): Promise<FileHandle> => {
  const refuse = (error: unknown): never => {
    throw new StartupError(`${path} cannot be read (${systemCode(error) ?? String(error)}).`, error)
  }
  // Before it is opened, since opening a pipe waits for its writer.
  if (!(await stat(path).catch(refuse)).isFile())
    throw new StartupError(`${path} is not a regular file, which can be read twice.`)
  return await open(path).catch(refuse)
}

/** Opens the file. Throws a StartupError if it cannot be read, or is no regular file. */
export const openStatement = async (path: string) => {
  const file = await openFile(path)
  const asOpened = await sizeAndTime(file)
  /** Reads the lines from the beginning, in their order. Throws a StatementError with the line for an unusable file. */
  const lines = async function* (): AsyncGenerator<StatementLine> {
    yield* readLines(file)
    if ((await sizeAndTime(file)) !== asOpened)
      throw new StartupError(`${path} was changed while it was read. The same command imports it as it is now.`)
  }
  /** Whether the path is this file, by any name or link. */
  const isAt = async (other: string): Promise<boolean> => {
    const otherFile = await stat(other, { bigint: true }).catch(() => undefined)
    const ownFile = await file.stat({ bigint: true })
    return otherFile?.ino === ownFile.ino && otherFile.dev === ownFile.dev
  }
  return { lines, isAt, close: () => file.close() }
}
export type StatementFile = Awaited<ReturnType<typeof openStatement>>
