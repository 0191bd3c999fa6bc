import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { systemCode } from './startupError.ts'

const isThere = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  )

/**
 * Creates the folder and those above it, where they are missing. Node's recursive mkdir never ends under /proc, where
 * nothing can be created. Rejects with the system error.
 */
export const createFolders = async (path: string, mode?: number): Promise<void> => {
  try {
    await mkdir(path, { mode })
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return
    if (systemCode(error) !== 'ENOENT' || (await isThere(dirname(path)))) throw error
    await createFolders(dirname(path), mode)
    await mkdir(path, { mode })
  }
}
