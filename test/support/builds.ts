import { execFile } from 'node:child_process'
import { cp, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { CleanupStack } from '../../src/lib/cleanupStack.ts'
import { StartupError } from '../../src/lib/startupError.ts'

/** Builds of the service: folders with the sources of a revision, run by the dependencies of this working tree. */

export type Build = {
  /** The revision as it was named, and its abbreviated commit. */
  readonly name: string
  readonly root: string
}

const here = fileURLToPath(new URL('../../', import.meta.url))

const git = async (...args: string[]): Promise<string> => {
  const { stdout } = await promisify(execFile)('git', args, { cwd: here })
  return stdout.trim()
}

/** The newest release; the parent of the newest commit as long as there is none. */
export const lastRelease = async (): Promise<string> => {
  const newestFirst = await git('tag', '--list', 'v*', '--sort=-version:refname')
  return newestFirst.split('\n', 1).join('') || 'HEAD^'
}

/** The abbreviated commit. Throws StartupError if there is no such revision here. */
export const commitOf = (revision: string): Promise<string> =>
  git('rev-parse', '--verify', '--short', `${revision}^{commit}`).catch(() => {
    throw new StartupError(`Git knows no revision ${JSON.stringify(revision)} in ${here}.`)
  })

/** Checks the revision out below `folder`; without one it is the working tree as it is. */
export const openBuild = async (
  revision: string | undefined,
  folder: string,
  cleanup: CleanupStack,
): Promise<Build> => {
  if (revision === undefined) return { name: `the working tree on ${await commitOf('HEAD')}`, root: here }
  const commit = await commitOf(revision)
  const root = join(folder, commit)
  cleanup.defer(async () => void (await git('worktree', 'remove', '--force', root)))
  await git('worktree', 'add', '--detach', root, commit)
  await symlink(join(here, 'node_modules'), join(root, 'node_modules'))
  return { name: revision.startsWith(commit) ? commit : `${revision} (${commit})`, root }
}

const COPIED = ['src', 'streams', 'projections', 'test/simulation', 'test/support', 'package.json']

/** Copies the working tree to a folder below `folder`, with these changes to files. */
export const copyBuild = async (
  folder: string,
  name: string,
  changes: Readonly<Record<string, (text: string) => string>> = {},
): Promise<Build> => {
  const root = join(folder, name)
  for (const part of COPIED) await cp(join(here, part), join(root, part), { recursive: true })
  await symlink(join(here, 'node_modules'), join(root, 'node_modules'))
  for (const [path, change] of Object.entries(changes)) {
    const text = await readFile(join(root, path), 'utf8')
    const changed = change(text)
    if (changed === text) throw new Error(`The change of ${path} has nothing to change.`)
    await writeFile(join(root, path), changed)
  }
  return { name, root }
}
