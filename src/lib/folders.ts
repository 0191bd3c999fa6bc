import { mkdir, stat, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { systemCode } from './startupError.ts'

const isFolder = (path: string): Promise<boolean> =>
  stat(path).then(
    found => found.isDirectory(),
    () => false,
  )

/** Creates the folder and those above. Node's recursive mkdir never ends under /proc. Rejects with the system error. */
export const createFolders = async (path: string, mode?: number): Promise<void> => {
  try {
    await mkdir(path, { mode })
  } catch (error) {
    if (systemCode(error) === 'EEXIST' && (await isFolder(path))) return
    if (systemCode(error) !== 'ENOENT' || (await isFolder(dirname(path)))) throw error
    await createFolders(dirname(path), mode)
    await mkdir(path, { mode })
  }
}

/** The free space of the file system that has, or will have, the folder. */
export const freeBytesOn = async (path: string): Promise<number> => {
  try {
    const { bavail, bsize } = await statfs(path)
    return bavail * bsize
  } catch (error) {
    if (dirname(path) === path) throw error
    return await freeBytesOn(dirname(path))
  }
}
