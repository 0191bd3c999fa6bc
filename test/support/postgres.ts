import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client } from 'pg'
import { type Child, startChild } from '../../src/embedded/childSupervisor.ts'
import { temporaryFolder } from '../embedded/childProcesses.ts'
import { removeFolder } from './folders.ts'
import { putPreparedCluster } from './preparedCluster.ts'

/** The Postgres server that all files of a process share, each with its own database. Tests must not stop or kill it. */

const module = fileURLToPath(new URL('../../src/embedded/postgres/postgres.ts', import.meta.url))

type Shared = { readonly child: Child; readonly folder: string }

let shared: Promise<Shared> | undefined
let databases = 0

const start = async (): Promise<Shared> => {
  const folder = await temporaryFolder()
  const dataDir = join(folder, 'postgres')
  await putPreparedCluster(dataDir)
  const args = ['--data-dir', dataDir, '--port', '0']
  return { child: await startChild({ name: 'postgres', module, args }), folder }
}

/** The address of a new database: empty, or a copy of the database of this name, to which no connection may be open. */
export const newDatabase = async (template = 'template1'): Promise<string> => {
  const { child } = await (shared ??= start())
  databases += 1
  const name = `test_${databases}`
  const client = new Client({ connectionString: child.address })
  await client.connect()
  try {
    await client.query(`create database ${name} template ${template}`)
  } finally {
    await client.end()
  }
  const url = new URL(child.address)
  url.pathname = `/${name}`
  return url.href
}

/** For the root hook. */
export const closeSharedPostgres = async (): Promise<void> => {
  const started = await shared?.catch(() => undefined)
  if (started === undefined) return
  await started.child.stop()
  await removeFolder(started.folder)
}
