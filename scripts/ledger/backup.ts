import { chown, rename, rm, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { Command } from 'commander'
import { StartupError } from '../../src/startupError.ts'
import { copyFolder } from './backup/copyFolder.ts'
import { backUpPostgres } from './backup/postgresBackup.ts'
import { findConnections } from './connections.ts'
import { interruptible } from './interruption.ts'
import { print, printJson } from './print.ts'
import { progressFor } from './progress.ts'

/** `backup`: a copy of the data directory of a running service with its embedded Postgres (BACKUP.md). */

type Options = { readonly out: string; readonly json: boolean }

const POSTGRES = 'postgres'
const CLUSTER = join(POSTGRES, 'cluster')
const PASSWORD = join(POSTGRES, 'password')
/** A restored copy has its own; the log of a process is no data. */
const LEFT_OUT = /^(?:lock(?:\.pid|-journal)?|addresses\.json(?:\.new)?|.*\.log|\.probe-\d+)$/

const isOwnFile = (path: string): boolean =>
  !LEFT_OUT.test(path) && (path === POSTGRES || path === PASSWORD || !path.startsWith(POSTGRES))

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  )

type Copying = {
  readonly dataDir: string
  readonly to: string
  readonly connectionString: string
  readonly json: boolean
  readonly signal: AbortSignal
}

/** The files beside Postgres are copied first: signed heads must not be of a later log than the copy has. */
const copyAll = async ({ dataDir, to, connectionString, json, signal }: Copying): Promise<number> => {
  const progress = progressFor({ json })('backup', 'files')
  let files = 0
  const onFile = (): void => {
    files += 1
    progress.advance(1)
  }
  try {
    await copyFolder({ from: dataDir, to, isWanted: isOwnFile, signal, onFile })
    await backUpPostgres({ connectionString, from: join(dataDir, CLUSTER), to: join(to, CLUSTER), signal, onFile })
    await keepOwnerOfLabel(join(to, CLUSTER))
  } finally {
    progress.end()
  }
  return files
}

/** Postgres removes the label after its first start, as the owner of the cluster. */
const keepOwnerOfLabel = async (cluster: string): Promise<void> => {
  const { uid, gid } = await stat(cluster)
  if (process.getuid?.() === 0) await chown(join(cluster, 'backup_label'), uid, gid)
}

const backup = async (options: Options): Promise<void> => {
  const { config, running } = await findConnections()
  if (running?.pids['postgres'] === undefined)
    throw new StartupError(
      `No service with an embedded Postgres runs on ${config.dataDir}. BACKUP.md says how external stores are backed up.`,
    )
  const out = resolve(options.out)
  if (await exists(out)) throw new StartupError(`${out} is there already: a backup gets a new folder.`)
  // Renamed when it is complete, so that a part of a backup is never taken for one.
  const unfinished = `${out}.unfinished`
  const files = await interruptible(async signal => {
    await rm(unfinished, { recursive: true, force: true })
    const { dataDir } = config
    return copyAll({ dataDir, to: unfinished, connectionString: running.postgres, json: options.json, signal })
  })
  if (files === undefined) return
  await rename(unfinished, out)
  if (options.json) printJson({ backup: out, files })
  else print(`${files} files in ${out}`)
}

export const backupCommand = new Command('backup')
  .description('Copies the data of a running service with its embedded Postgres, consistently and under load.')
  .requiredOption('--out <folder>', 'a new folder, which can be used as a data directory')
  .option('--json', 'print JSON: {backup, files}', false)
  .addHelpText(
    'after',
    '\nThe copy has everything that was acknowledged before the command began. It contains keys and passwords: it is readable by\n' +
      'its owner alone, and should stay so. To restore it, copy it to a new folder and start a service with that as\n' +
      'LEDGER_DATA_DIR (BACKUP.md). External stores are backed up by their own means.',
  )
  .action(backup)
