import { lstat, mkdir, mkdtemp, readdir, realpath, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { Command } from 'commander'
import { StartupError, systemCode } from '../../src/lib/startupError.ts'
import { copyFolder, isWithin, syncFolder } from './backup/copyFolder.ts'
import { backUpPostgres } from './backup/postgresBackup.ts'
import { findConnections } from './connections.ts'
import { interruptible } from './interruption.ts'
import { counted, jsonOption, print, printJson } from './print.ts'
import { progressFor } from './progress.ts'

const POSTGRES = 'postgres'
const CLUSTER = join(POSTGRES, 'cluster')
const PASSWORD = join(POSTGRES, 'password')
const OWNER_ONLY = 0o700
/** A restored copy has its own; the log of a process is no data. */
const LEFT_OUT = /^(?:lock(?:\.pid|-journal)?|addresses\.json(?:\.new)?|.*\.log|\.probe-\d+)$/

const isOwnFile = (path: string): boolean =>
  !LEFT_OUT.test(path) && (path === POSTGRES || path === PASSWORD || !path.startsWith(POSTGRES))

/** Also where the last folders of the path are not there yet. */
const realPathOf = async (path: string): Promise<string> => {
  try {
    return await realpath(path)
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error
    return join(await realPathOf(dirname(path)), basename(path))
  }
}

const isThere = (out: string): StartupError =>
  new StartupError(`${out} already exists. Name a new folder for the backup.`)

const contentOf = async (folder: string) => {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter(entry => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name))
  const sizes = await Promise.all(files.map(async path => (await stat(path)).size))
  return { files: files.length, bytes: sizes.reduce((sum, size) => sum + size, 0) }
}
type Content = Awaited<ReturnType<typeof contentOf>>

type Copying = {
  readonly dataDir: string
  readonly to: string
  readonly connectionString: string
  readonly json: boolean
  readonly signal: AbortSignal
}

/** The files beside Postgres are copied first: signed heads must not be of a later log than the copy has. */
const copyAll = async ({ dataDir, to, connectionString, json, signal }: Copying): Promise<Content> => {
  const progress = progressFor({ json })('backup', 'files')
  let [files, bytes] = [0, 0]
  const onFile = (size: number): void => {
    files += 1
    bytes += size
    progress.advance(1)
  }
  try {
    await copyFolder({ from: dataDir, to, isWanted: isOwnFile, signal, onFile })
    await backUpPostgres({ connectionString, from: join(dataDir, CLUSTER), to: join(to, CLUSTER), signal, onFile })
    await syncFolder(join(to, POSTGRES))
  } finally {
    progress.end()
  }
  return { files, bytes }
}

/** Throws a StartupError where another program has changed the copy, or has taken its name. */
const complete = async (unfinished: string, out: string, copied: Content): Promise<void> => {
  const content = await contentOf(unfinished)
  if (content.files !== copied.files || content.bytes !== copied.bytes)
    throw new StartupError(
      `${copied.files} files of ${copied.bytes} bytes were copied, and ${content.files} of ${content.bytes} bytes are there: ` +
        'another program has changed the copy.',
    )
  await rename(unfinished, out).catch((error: unknown) => {
    throw ['ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes(systemCode(error) ?? '') ? isThere(out) : error
  })
  await syncFolder(dirname(out))
}

const newFolder = async (path: string, dataDir: string): Promise<string> => {
  const out = await realPathOf(resolve(path))
  if ((await lstat(out).catch(() => undefined)) !== undefined) throw isThere(out)
  if (isWithin(out, dataDir))
    throw new StartupError(`${out} is in the data directory, ${dataDir}: name a folder outside it for the backup.`)
  await mkdir(dirname(out), { recursive: true, mode: OWNER_ONLY })
  return out
}

const backup = async (options: { readonly out: string; readonly json: boolean }): Promise<void> => {
  const { config, running } = await findConnections()
  if (running?.pids['postgres'] === undefined)
    throw new StartupError(
      `No service with an embedded Postgres runs on ${config.dataDir}. scripts/ledger/BACKUP.md says how external stores are backed up.`,
    )
  const dataDir = await realpath(config.dataDir)
  const out = await newFolder(options.out, dataDir)
  // A folder of its own, since others may be making a backup of the same name; renamed when it is complete.
  const unfinished = await mkdtemp(`${out}.unfinished-`)
  try {
    const copied = await interruptible(signal =>
      copyAll({ dataDir, to: unfinished, connectionString: running.postgres, json: options.json, signal }),
    )
    if (copied === undefined) return
    await complete(unfinished, out, copied)
    if (options.json) printJson({ backup: out, files: copied.files })
    else {
      print(`${counted(copied.files, 'file')} in ${out}`)
      print(`To restore it into a new folder: cp -a ${out} RESTORED && LEDGER_DATA_DIR=RESTORED npm start`)
    }
  } finally {
    await rm(unfinished, { recursive: true, force: true })
  }
}

export const backupCommand = new Command('backup')
  .description('Copies the data of a running service with its embedded Postgres, consistently and under load.')
  .requiredOption('--out <folder>', 'a new folder, which can be used as a data directory')
  .addOption(jsonOption('print JSON: {backup, files}'))
  .addHelpText(
    'after',
    '\nThe copy has everything that was acknowledged before the command began. It contains keys and passwords: it is readable by\n' +
      'its owner alone, and should stay so. To restore it, copy it to a new folder and start a service with that as\n' +
      'LEDGER_DATA_DIR. External stores are backed up by their own means: scripts/ledger/BACKUP.md has the commands and their order.',
  )
  .action(backup)
