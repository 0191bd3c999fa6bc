import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Mutant } from './mutant.ts'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** A copy of the working tree, in which bugs are planted, so that the tree itself is never changed. */
export type TreeCopy = {
  readonly folder: string
  /** An empty folder for temporary files, removed with the copy. */
  readonly scratch: string
  /** Plants the bug. Resolves with a function that removes it again. Throws when the text is not found exactly once. */
  readonly plant: (mutant: Mutant) => Promise<() => Promise<void>>
  readonly remove: () => Promise<void>
}

/** The text of the file with the bug in it. */
export const withBug = (text: string, { name, file, find, replace }: Mutant): string => {
  const places = text.split(find).length - 1
  if (places !== 1) throw new Error(`The text that the bug "${name}" replaces occurs ${places} times in ${file}.`)
  return text.replace(find, () => replace)
}

const REMOVE_RETRIES_MAX = 10

const filesOfTree = (): readonly string[] =>
  execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { cwd: ROOT })
    .toString()
    .trim()
    .split('\n')
    .filter(path => existsSync(join(ROOT, path)))

const fill = async (folder: string): Promise<void> => {
  for (const path of filesOfTree()) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await cp(join(ROOT, path), join(folder, path))
  }
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
}

export const copyTree = async (): Promise<TreeCopy> => {
  const whole = await mkdtemp(join(tmpdir(), 'mutants-'))
  const [folder, scratch] = [join(whole, 'tree'), join(whole, 'tmp')]
  const remove = (): Promise<void> => rm(whole, { recursive: true, force: true, maxRetries: REMOVE_RETRIES_MAX })
  try {
    await mkdir(scratch)
    await fill(folder)
  } catch (error) {
    await remove()
    throw error
  }
  return {
    folder,
    scratch,
    plant: async mutant => {
      const path = join(folder, mutant.file)
      const right = await readFile(path, 'utf8')
      await writeFile(path, withBug(right, mutant))
      return () => writeFile(path, right)
    },
    remove,
  }
}
