import { type FileHandle, open, stat } from 'node:fs/promises'
import { StartupError, systemCode } from '../../../src/lib/startupError.ts'
import { readCamt053 } from './camt053.ts'
import { readCsvStatement } from './csvStatement.ts'
import { type StatementLine, StatementError } from './statementLine.ts'
import { decoded } from './statementText.ts'

/**
 * The file of a bank statement, which is read twice: to check all of it, and to reconcile it. It is never held whole.
 */

export type StatementFile = {
  /** Reads the lines from the beginning, in their order. Throws a StatementError with the line for an unusable file. */
  readonly lines: () => AsyncGenerator<StatementLine>
  /** Whether the path is this file, by any name or link. */
  readonly isAt: (path: string) => Promise<boolean>
  readonly close: () => Promise<void>
}

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
export const openStatement = async (path: string): Promise<StatementFile> => {
  const file = await openFile(path)
  const asOpened = await sizeAndTime(file)
  const lines = async function* (): AsyncGenerator<StatementLine> {
    yield* readLines(file)
    if ((await sizeAndTime(file)) !== asOpened)
      throw new StartupError(`${path} was changed while it was read. The same command imports it as it is now.`)
  }
  const isAt = async (other: string): Promise<boolean> => {
    const otherFile = await stat(other, { bigint: true }).catch(() => undefined)
    const ownFile = await file.stat({ bigint: true })
    return otherFile?.ino === ownFile.ino && otherFile.dev === ownFile.dev
  }
  return { lines, isAt, close: () => file.close() }
}
