import { join } from 'node:path'
import { Client } from 'pg'
import { startPostgres, temporaryFolder, type TestChild } from '../embedded/childProcesses.ts'
import { removeFolder } from './folders.ts'
import { putPreparedCluster } from './preparedCluster.ts'

/** The Postgres server that all files of a process share, each with its own database. Tests must not stop or kill it. */

type Shared = { readonly child: TestChild; readonly folder: string }

let shared: Promise<Shared> | undefined
let databases = 0

const start = async (): Promise<Shared> => {
  const folder = await temporaryFolder()
  const dataDir = join(folder, 'postgres')
  await putPreparedCluster(dataDir)
  return { child: await startPostgres(dataDir), folder }
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
