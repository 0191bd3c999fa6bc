import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { createFolders } from '../lib/folders.ts'
import { linesOf } from './lines.ts'
import { type Head, lineOf, parseHead } from './heads.ts'

/** The file of heads outside the database: one head a line, only appended to. */

const OWNER_ONLY_FILE = 0o600
const OWNER_ONLY_FOLDER = 0o700
/** More than the longest line has: 64 hashes of a consistency proof. */
const TAIL_BYTES = 65_536
const LINE_FEED = 0x0a

const tailOf = async (path: string): Promise<{ readonly text: Buffer; readonly size: number }> => {
  const file = await open(path, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (file === undefined) return { text: Buffer.alloc(0), size: 0 }
  try {
    const { size } = await file.stat()
    const text = Buffer.alloc(Math.min(size, TAIL_BYTES))
    await file.read(text, 0, text.length, size - text.length)
    return { text, size }
  } finally {
    await file.close()
  }
}

/** The number of bytes after the last line feed: a line that a process was killed in. It never counted as published. */
const tornBytes = (text: Buffer): number => text.length - (text.lastIndexOf(LINE_FEED) + 1)

const lastHeadIn = (text: Buffer, path: string): Head | undefined => {
  const whole = text.subarray(0, text.length - tornBytes(text)).toString('utf8')
  const line = whole.trimEnd().split('\n').at(-1) ?? ''
  if (line === '') return undefined
  const head = parseHead(line)
  if ('unreadable' in head)
    throw new Error(`The last line of the file of heads is damaged: ${head.unreadable} (${path}).`)
  return head
}

export const openHeadFile = (path: string) => ({
  path,
  /** The newest head; undefined in an empty file. Reads the end of the file alone. */
  last: async (): Promise<Head | undefined> => lastHeadIn((await tailOf(path)).text, path),
  /** The heads are on the disk when this resolves. */
  append: async (heads: readonly Head[]): Promise<void> => {
    await createFolders(dirname(path), OWNER_ONLY_FOLDER)
    const { text, size } = await tailOf(path)
    const file = await open(path, 'a', OWNER_ONLY_FILE)
    try {
      const torn = tornBytes(text)
      if (torn > 0) await file.truncate(size - torn)
      await file.appendFile(heads.map(head => `${lineOf(head)}\n`).join(''))
      await file.sync()
    } finally {
      await file.close()
    }
  },
})
export type HeadFile = ReturnType<typeof openHeadFile>

/** The lines of a file of heads, one at a time, with their numbers. */
export const linesOfHeads = (path: string) => linesOf(createReadStream(path))
