import { open } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { Client } from 'pg'
import { copyFolder } from './copyFolder.ts'

/**
 * A backup of a running Postgres by its low-level API: its files are copied between pg_backup_start and pg_backup_stop,
 * then its write-ahead log, from which the copy becomes consistent when it is started. A replication slot of this
 * session keeps the log from being removed meanwhile. Everything that was committed before the copy began is in it.
 */

const SLOT = "select pg_create_physical_replication_slot('ledger_backup_' || pg_backend_pid(), true, true)"
const START = "select pg_backup_start('ledger backup', true)"
const STOP = 'select labelfile from pg_backup_stop(false)'

const LOG = 'pg_wal'
/** Folders of the running server, whose content means nothing to another one. */
const EMPTIED = ['pg_dynshmem', 'pg_notify', 'pg_replslot', 'pg_serial', 'pg_snapshots', 'pg_stat_tmp', 'pg_subtrans']
const OF_THIS_SERVER = new Set(['postmaster.pid', 'postmaster.opts'])

const isData = (path: string): boolean => {
  const [top = ''] = path.split(sep)
  if (OF_THIS_SERVER.has(path)) return false
  return path === top || ![LOG, ...EMPTIED].includes(top)
}

const writeDurably = async (path: string, text: string): Promise<void> => {
  const file = await open(path, 'wx', 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
}

export type PostgresBackup = {
  readonly connectionString: string
  /** The cluster of the running server, and the folder of the copy. */
  readonly from: string
  readonly to: string
  readonly signal: AbortSignal
  readonly onFile: () => void
}

/** Rejects when the signal aborts or anything fails; the copy is then of no use. */
export const backUpPostgres = async ({ connectionString, from, to, signal, onFile }: PostgresBackup): Promise<void> => {
  const client = new Client({ connectionString, application_name: 'ledger-backup' })
  // The end of the session shows in the next query.
  client.on('error', () => undefined)
  await client.connect()
  try {
    await client.query('set statement_timeout = 0')
    await client.query(SLOT)
    await client.query(START)
    await copyFolder({ from, to, isWanted: isData, signal, onFile })
    const { rows } = await client.query<{ labelfile: string }>(STOP)
    await copyFolder({ from: join(from, LOG), to: join(to, LOG), isWanted: () => true, signal, onFile })
    await writeDurably(join(to, 'backup_label'), rows[0]?.labelfile ?? '')
  } finally {
    await client.end()
  }
}
