import { randomUUID } from 'node:crypto'
import { chmod, link, mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { StartupError, systemCode } from '../../startupError.ts'

const OWNER_ONLY_FILE = 0o600
const OWNER_ONLY_FOLDER = 0o700
const LOCK_FILE = 'lock'
const LOCK_MAX_MS = 5_000

/** Where the issuer keeps what is its own, inside the service's data directory. */
export const issuerFolder = (dataDir: string): string => join(dataDir, 'issuer')

const readIfThere = async (path: string): Promise<string | undefined> => {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined
    throw new StartupError(`${path} cannot be read.`, error)
  }
}

/** The content reaches the disk under a name of its own first, so that a crash never leaves half a secret. */
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

/**
 * Gives the draft its final name unless another process was first. Linking fails where renaming would overwrite: the
 * service and the command line may both find no key and both make one, and only one of them may become the key.
 */
const publish = async (draft: string, path: string): Promise<void> => {
  try {
    await link(draft, path)
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error
  } finally {
    await rm(draft, { force: true })
  }
}

/**
 * The content of a file that only its owner may read. It is created with what `create` gives when it is not there; of
 * several processes that do this at once, all get the content of the first. Throws a StartupError when that cannot be done.
 */
export const readOrCreatePrivate = async (
  folder: string,
  name: string,
  create: () => Promise<string>,
): Promise<string> => {
  const path = join(folder, name)
  try {
    await mkdir(folder, { recursive: true, mode: OWNER_ONLY_FOLDER })
    if ((await readIfThere(path)) === undefined) await publish(await writeBeside(path, await create()), path)
    // A copy or a restored backup may have brought a wider mode with it.
    await chmod(path, OWNER_ONLY_FILE)
  } catch (error) {
    throw error instanceof StartupError ? error : new StartupError(`${path} cannot be created.`, error)
  }
  const content = await readIfThere(path)
  if (content === undefined) throw new StartupError(`${path} disappeared while it was read.`)
  return content
}

/** One editor at a time; the kernel drops the lock with its holder, as it does for the data directory. */
const lockFolder = (folder: string): DatabaseSync => {
  const lock = new DatabaseSync(join(folder, LOCK_FILE), { timeout: LOCK_MAX_MS })
  try {
    lock.exec('begin exclusive')
    return lock
  } catch (error) {
    lock.close()
    throw new StartupError(`${folder} is being changed by another command: try again.`, error)
  }
}

/**
 * Puts what `change` makes of the present content in its place, created first as `readOrCreatePrivate` does. Whoever
 * reads meanwhile gets the old content or the new, and of two editors the second sees the work of the first.
 * Throws a StartupError when that cannot be done; whatever `change` throws leaves the file as it is.
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
    lock.close()
  }
}
