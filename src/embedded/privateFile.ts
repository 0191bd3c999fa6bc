import { randomUUID } from 'node:crypto'
import { chmod, link, open, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createFolders } from '../lib/folders.ts'
import { StartupError, systemCode } from '../lib/startupError.ts'
import { type FileLock, tryFileLock } from './fileLock.ts'

/** Private files in the data directory: created once, edited atomically. */

const OWNER_ONLY_FILE = 0o600
const OWNER_ONLY_FOLDER = 0o700
const LOCK_FILE = 'lock'
const LOCK_MAX_MS = 5_000

export const issuerFolder = (dataDir: string): string => join(dataDir, 'issuer')

const readIfThere = async (path: string): Promise<string | undefined> => {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined
    throw new StartupError(`${path} cannot be read.`, error)
  }
}

/** Writes the content to a temporary file first, so a crash never leaves half a secret. */
const writeBeside = async (path: string, content: string): Promise<string> => {
  const draft = `${path}.${randomUUID()}`
  const file = await open(draft, 'wx', OWNER_ONLY_FILE)
  try {
    await file.writeFile(content)
    await file.sync()
  } finally {
    await file.close()
  }
  return draft
}

/** A link fails where a rename would overwrite: of two processes that create a key, only the first may win. */
const publish = async (draft: string, path: string): Promise<void> => {
  try {
    await link(draft, path)
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error
  } finally {
    await rm(draft, { force: true })
  }
}

/** A missing file is created by `create`, once for all concurrent processes. Throws a StartupError if that fails. */
export const readOrCreatePrivate = async (
  folder: string,
  name: string,
  create: () => Promise<string>,
): Promise<string> => {
  const path = join(folder, name)
  try {
    await createFolders(folder, OWNER_ONLY_FOLDER)
    if ((await readIfThere(path)) === undefined) await publish(await writeBeside(path, await create()), path)
    // A copy or a restored backup may have a wider mode.
    await chmod(path, OWNER_ONLY_FILE)
  } catch (error) {
    throw error instanceof StartupError ? error : new StartupError(`${path} cannot be created.`, error)
  }
  const content = await readIfThere(path)
  if (content === undefined) throw new StartupError(`${path} disappeared while it was read.`)
  return content
}

/** One editor at a time; the kernel releases the lock with its process, as for the data directory. */
const lockFolder = (folder: string): FileLock => {
  const lock = tryFileLock(join(folder, LOCK_FILE), LOCK_MAX_MS)
  if (lock === undefined) throw new StartupError(`${folder} is being changed by another command: try again.`)
  return lock
}

/**
 * Editors see each other's results, readers the old or the new content. Throws a StartupError; an error of `change`
 * leaves the file unchanged.
 */
export const editPrivate = async (
  folder: string,
  name: string,
  create: () => Promise<string>,
  change: (content: string) => Promise<string>,
): Promise<void> => {
  const content = await readOrCreatePrivate(folder, name, create)
  const lock = lockFolder(folder)
  try {
    const draft = await writeBeside(
      join(folder, name),
      await change((await readIfThere(join(folder, name))) ?? content),
    )
    await rename(draft, join(folder, name))
  } finally {
    lock.release()
  }
}
