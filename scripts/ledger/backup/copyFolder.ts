import { chown, copyFile, lstat, mkdir, open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { systemCode } from '../../../src/startupError.ts'

/** Copies the files of a folder, with their modes and owners, while a server writes them. */

export type CopyOptions = {
  readonly from: string
  readonly to: string
  /** Whether the file or folder at this path, relative to `from`, is copied. */
  readonly isWanted: (path: string) => boolean
  readonly signal: AbortSignal
  readonly onFile: () => void
}

/** Each file is synced, and the disk writes several at once nearly as fast as one. */
const FILES_AT_ONCE = 32

/** Only root may give files to others; for any other user the owner is the same anyway. */
const keepOwner = async (source: string, target: string): Promise<void> => {
  if (process.getuid?.() !== 0) return
  const { uid, gid } = await lstat(source)
  await chown(target, uid, gid)
}

const copyDurably = async (source: string, target: string): Promise<void> => {
  await copyFile(source, target)
  await keepOwner(source, target)
  const file = await open(target, 'r')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}

/** The paths below the folder, each folder before its content. A folder that was removed meanwhile has none. */
const entriesOf = async (folder: string) => {
  try {
    return (await readdir(folder, { withFileTypes: true })).toSorted((a, b) => (a.name < b.name ? -1 : 1))
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return []
    throw error
  }
}

/**
 * Copies files and folders; sockets and links are left out. A file that is removed meanwhile is left out too: Postgres
 * knows from its log that it is gone. Each copied file is on the disk when this resolves.
 */
export const copyFolder = async (options: CopyOptions, path = ''): Promise<void> => {
  const { from, to, isWanted, signal } = options
  await mkdir(join(to, path), { recursive: true, mode: (await lstat(join(from, path))).mode })
  await keepOwner(join(from, path), join(to, path))
  const entries = (await entriesOf(join(from, path))).filter(({ name }) => isWanted(join(path, name)))
  const files = entries.filter(entry => entry.isFile())
  for (let start = 0; start < files.length; start += FILES_AT_ONCE) {
    signal.throwIfAborted()
    const some = files.slice(start, start + FILES_AT_ONCE)
    await Promise.all(some.map(({ name }) => copyIfThere(options, join(path, name))))
  }
  for (const { name } of entries.filter(entry => entry.isDirectory())) await copyFolder(options, join(path, name))
}

const copyIfThere = async ({ from, to, onFile }: CopyOptions, path: string): Promise<void> => {
  try {
    await copyDurably(join(from, path), join(to, path))
    onFile()
  } catch (error) {
    if (systemCode(error) !== 'ENOENT' || (await isThere(join(from, path)))) throw error
  }
}

const isThere = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  )
