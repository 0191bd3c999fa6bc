/** The embedded event store for tests: a real node in its own process, on a real Postgres. */

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { newDatabase } from '../support/postgres.ts'
import { putPreparedCluster } from '../support/preparedCluster.ts'
import { removeFolder, startChild, startPostgres, temporaryFolder, type TestChild } from './childProcesses.ts'

export const NODE = new URL('../../src/embedded/eventstore/main.ts', import.meta.url)

export type TestNode = {
  /** `esdb://…`, the same after every restart. */
  readonly address: string
  readonly databaseUrl: string
  readonly pid: () => number
  /** kill -9 of Postgres; the supervisor starts it again. */
  killPostgres(): Promise<void>
  /** Stops the node gracefully and starts it again. */
  restart(): Promise<void>
  /** kill -9; the supervisor starts it again. */
  kill(): void
  stop(): Promise<void>
}

const startNode = (databaseUrl: string, firstPort: number): Promise<TestChild> =>
  startChild({
    name: 'eventstore',
    module: NODE,
    port: firstPort,
    args: port => ['--database-url', databaseUrl, '--port', port],
    endsMax: 1000,
  })

type Server = { readonly databaseUrl: string; readonly folder?: string; readonly stop: () => Promise<void> }

const sharedServer = async (): Promise<Server> => ({ databaseUrl: await newDatabase(), stop: async () => undefined })

const ownServer = async (): Promise<Server> => {
  const folder = await temporaryFolder()
  const dataDir = join(folder, 'postgres')
  await putPreparedCluster(dataDir)
  const postgres = await startPostgres(dataDir)
  const database = new URL(postgres.address)
  database.pathname = '/eventstore'
  const stop = async (): Promise<void> => {
    await postgres.stop()
    await removeFolder(folder)
  }
  return { databaseUrl: database.href, folder, stop }
}

/** Tests that kill Postgres need a server of their own. */
export const startTestNode = async ({ hasOwnPostgres = false } = {}): Promise<TestNode> => {
  const server = await (hasOwnPostgres ? ownServer() : sharedServer())
  const { databaseUrl, folder } = server
  let node = await startNode(databaseUrl, 0)
  const { address } = node
  return {
    address,
    databaseUrl,
    pid: () => node.pid,
    killPostgres: async () => {
      if (folder === undefined) throw new Error('Other tests share this Postgres server.')
      const file = await readFile(join(folder, 'postgres/cluster/postmaster.pid'), 'utf8')
      process.kill(Number.parseInt(file, 10), 'SIGKILL')
    },
    restart: async () => {
      await node.stop()
      node = await startNode(databaseUrl, Number(new URL(address).port))
    },
    kill: () => void process.kill(node.pid, 'SIGKILL'),
    stop: async () => {
      await node.stop()
      await server.stop()
    },
  }
}
