import { open, readdir, stat } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { Client, DatabaseError } from 'pg'
import { StartupError } from '../../../src/lib/startupError.ts'
import { type CopyOptions, copyFolder, keepOwner, syncFolder } from './copyFolder.ts'

/**
 * A backup of a running Postgres by its low-level API: its files are copied between pg_backup_start and pg_backup_stop,
 * then its write-ahead log, from which the copy becomes consistent when it is started. A temporary replication slot keeps
 * the log from being removed meanwhile, and ends with the session. Everything that was committed before the copy began
 * is in it.
 */

const SLOT = "select pg_create_physical_replication_slot('ledger_backup_' || pg_backend_pid(), true, true)"
const START = "select pg_backup_start('ledger backup', true)"
const STOP = 'select labelfile from pg_backup_stop(false)'
/** Fails when the session, and the slot with it, has ended before the log was copied. */
const PRESENT = 'select 1'

/** The server has one slot. */
const NO_FREE_SLOT = '53400'

const LABEL = 'backup_label'
const LOG = 'pg_wal'
const TABLESPACES = 'pg_tblspc'
/** Folders of the running server, whose content means nothing to another one. */
const EMPTIED = ['pg_dynshmem', 'pg_notify', 'pg_replslot', 'pg_serial', 'pg_snapshots', 'pg_stat_tmp', 'pg_subtrans']
const OF_THIS_SERVER = new Set(['postmaster.pid', 'postmaster.opts'])

const isData = (path: string): boolean => {
  const [top = ''] = path.split(sep)
  if (OF_THIS_SERVER.has(path)) return false
  return path === top || ![LOG, ...EMPTIED].includes(top)
}

const writeDurably = async (path: string, content: Uint8Array): Promise<void> => {
  const file = await open(path, 'wx', 0o600)
  try {
    await file.writeFile(content)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** `from`: the cluster of the running server. */
type PostgresBackup = Omit<CopyOptions, 'isWanted'> & { readonly connectionString: string }

const takeSlot = async (client: Client): Promise<void> => {
  try {
    await client.query(SLOT)
  } catch (error) {
    if (!(error instanceof DatabaseError && error.code === NO_FREE_SLOT)) throw error
    throw new StartupError('Another backup of this service is running: try again when it has finished.', error)
  }
}

/** Their places are absolute: a copy would use those of the original. */
const refuseTablespaces = async (cluster: string): Promise<void> => {
  if ((await readdir(join(cluster, TABLESPACES))).length > 0)
    throw new StartupError(
      'Postgres has tablespaces, which a backup cannot contain: move their tables to pg_default, and drop them.',
    )
}

/** Rejects when the signal aborts or anything fails; the copy is then of no use. */
export const backUpPostgres = async ({ connectionString, from, to, signal, onFile }: PostgresBackup): Promise<void> => {
  const client = new Client({ connectionString, application_name: 'ledger-backup' })
  // The end of the session shows in the next query.
  client.on('error', () => undefined)
  await refuseTablespaces(from)
  await client.connect()
  // A checkpoint may take minutes; the server drops the slot when the session ends.
  const stop = (): void => void client.end()
  signal.addEventListener('abort', stop)
  try {
    await client.query('set statement_timeout = 0')
    await takeSlot(client)
    await client.query(START)
    await copyFolder({ from, to, isWanted: isData, signal, onFile })
    const { rows } = await client.query<{ labelfile: string }>(STOP)
    await copyFolder({ from: join(from, LOG), to: join(to, LOG), isWanted: () => true, signal, onFile })
    const label = Buffer.from(rows[0]?.labelfile ?? '')
    await writeDurably(join(to, LABEL), label)
    onFile(label.length)
    // Postgres removes it after its first start, as the owner of the cluster.
    await keepOwner(join(to, LABEL), await stat(from))
    await syncFolder(to)
    await client.query(PRESENT)
  } finally {
    signal.removeEventListener('abort', stop)
    await client.end()
  }
}
