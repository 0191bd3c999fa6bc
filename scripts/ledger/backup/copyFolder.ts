import type { Stats } from 'node:fs'
import { chown, type FileHandle, lstat, mkdir, open, readdir, realpath, stat } from 'node:fs/promises'
import { isAbsolute, join, relative, sep } from 'node:path'
import { StartupError, systemCode } from '../../../src/lib/startupError.ts'

export type CopyOptions = {
  readonly from: string
  /** Without symbolic links in its path. */
  readonly to: string
  /** Whether the file or folder at this path, relative to `from`, is copied. */
  readonly isWanted: (path: string) => boolean
  readonly signal: AbortSignal
  /** Called after each file, with the number of its bytes. */
  readonly onFile: (bytes: number) => void
}

/** Each file is synced, and the disk writes several at once nearly as fast as one. */
const FILES_AT_ONCE = 32
const CHUNK_BYTES = 262_144

/** Whether the path is that of the folder, or below it. */
export const isWithin = (path: string, folder: string): boolean => {
  const way = relative(folder, path)
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way)
}

/** Makes the names in the folder durable, which an fsync of the files does not. */
export const syncFolder = async (path: string): Promise<void> => {
  const folder = await open(path)
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

/** Only root may give files to others; for any other user the owner is the same anyway. */
export const keepOwner = async (copy: string, { uid, gid }: Stats): Promise<void> => {
  if (process.getuid?.() === 0) await chown(copy, uid, gid)
}

/** Undefined for a file or folder that was removed meanwhile. */
const ifThere = <T>(reading: Promise<T>): Promise<T | undefined> =>
  reading.catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return undefined
    throw error
  })

/** Follows a symbolic link. Throws a StartupError for one that leads nowhere. */
const statsOf = async (path: string): Promise<Stats | undefined> => {
  const stats = await ifThere(stat(path))
  if (stats === undefined && (await ifThere(lstat(path)))?.isSymbolicLink())
    throw new StartupError(`${path} is a symbolic link to a file that is not there.`)
  return stats
}

type Entry = { readonly path: string; readonly stats: Stats }

const entriesToCopy = async ({ from, isWanted }: CopyOptions, folder: string): Promise<readonly Entry[]> => {
  const names = (await ifThere(readdir(join(from, folder)))) ?? []
  const paths = names.toSorted().map(name => join(folder, name))
  const entries = paths.filter(isWanted).map(async path => ({ path, stats: await statsOf(join(from, path)) }))
  return (await Promise.all(entries)).flatMap(({ path, stats }) => (stats === undefined ? [] : [{ path, stats }]))
}

/** Up to the present end: servers truncate files, and `copyFile` of Node would wait for the bytes that are gone. */
const copyBytes = async (original: FileHandle, copy: FileHandle, signal: AbortSignal): Promise<number> => {
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES)
  for (let bytes = 0; ; ) {
    signal.throwIfAborted()
    const { bytesRead } = await original.read(buffer)
    if (bytesRead === 0) return bytes
    await copy.writeFile(buffer.subarray(0, bytesRead))
    bytes += bytesRead
  }
}

const copyDurably = async (original: FileHandle, target: string, signal: AbortSignal): Promise<number> => {
  const stats = await original.stat()
  const copy = await open(target, 'wx', stats.mode)
  try {
    await keepOwner(target, stats)
    const bytes = await copyBytes(original, copy, signal)
    await copy.sync()
    return bytes
  } finally {
    await copy.close()
  }
}

const copyFile = async ({ from, to, signal, onFile }: CopyOptions, path: string): Promise<void> => {
  const original = await ifThere(open(join(from, path)))
  if (original === undefined) return
  try {
    onFile(await copyDurably(original, join(to, path), signal))
  } finally {
    await original.close()
  }
}

/** Rejects when all have ended, so that nothing is written after a failure. */
const allEnded = async (work: readonly Promise<void>[]): Promise<void> => {
  await Promise.allSettled(work)
  await Promise.all(work)
}

/** `above` has the real paths of the folders around this one: a symbolic link may lead back to one of them. */
const copyEntries = async (options: CopyOptions, { path, stats }: Entry, above: readonly string[]): Promise<void> => {
  const { from, to, signal } = options
  const real = await ifThere(realpath(join(from, path)))
  if (real === undefined) return
  const inside = [to, ...above].find(folder => isWithin(folder, real))
  if (inside !== undefined)
    throw new StartupError(`${join(from, path)} leads to a folder that contains ${inside}, and cannot be copied there.`)
  await mkdir(join(to, path), { recursive: true, mode: stats.mode })
  await keepOwner(join(to, path), stats)
  const entries = await entriesToCopy(options, path)
  const files = entries.filter(entry => entry.stats.isFile())
  for (let start = 0; start < files.length; start += FILES_AT_ONCE) {
    signal.throwIfAborted()
    await allEnded(files.slice(start, start + FILES_AT_ONCE).map(file => copyFile(options, file.path)))
  }
  for (const folder of entries.filter(entry => entry.stats.isDirectory()))
    await copyEntries(options, folder, [...above, real])
  await syncFolder(join(to, path))
}

/**
 * Copies files and folders, also those behind symbolic links; sockets are left out, and so is a file that is removed
 * meanwhile: Postgres knows from its log that it is gone. Everything is on the disk when this resolves, except the name of
 * `to` in its own folder.
 */
export const copyFolder = async (options: CopyOptions): Promise<void> =>
  copyEntries(options, { path: '', stats: await stat(options.from) }, [])
