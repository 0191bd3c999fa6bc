import { cp, writeFile } from 'node:fs/promises'
import { createServer, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Server as TcpServer } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { type DataDirectory, openDataDirectory } from '../../../src/embedded/dataDirectory.ts'
import { findFreePort } from '../../../src/embedded/freePorts.ts'
import type { Addresses } from '../../../src/compose/addressesFile.ts'
import { sharedService, temporaryDirectory } from '../../support/service.ts'
import { type Ended, run } from '../cli.ts'
import { removeFolder } from '../../support/folders.ts'

/** Fixtures for the tests of the command line: data directories, servers, and the parsed output. */

const folders: string[] = []
const directories: DataDirectory[] = []
const servers: Server[] = []
const silent: TcpServer[] = []

export const ledger = async (args: readonly string[], dataDir?: string, env = {}): Promise<Ended> =>
  run('ledger.ts', args, { LEDGER_DATA_DIR: dataDir ?? (await sharedService()).dataDir, ...env })

export const emptyFolder = async (): Promise<string> => {
  const folder = await temporaryDirectory()
  folders.push(folder)
  return folder
}

/**
 * The data directory of the shared service with some addresses changed, and with its issuer; this process takes the part
 * of the service.
 */
export const folderWith = async (changes: Partial<Addresses>): Promise<string> => {
  const folder = await emptyFolder()
  directories.push(await openDataDirectory(folder))
  const { addresses, dataDir } = await sharedService()
  await cp(join(dataDir, 'issuer'), join(folder, 'issuer'), { recursive: true })
  const pids = { ...addresses.pids, service: process.pid }
  await writeFile(join(folder, 'addresses.json'), JSON.stringify({ ...addresses, pids, ...changes }))
  return folder
}

export const serving = async (listener: RequestListener): Promise<string> => {
  const server = createServer(listener)
  servers.push(server)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A port that accepts connections and never answers. */
export const silentPort = async (): Promise<number> => {
  const server = createTcpServer(socket => void socket.on('error', () => undefined).resume())
  silent.push(server)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

/** A port on which nothing listens. */
export const closedPort = (): Promise<number> => findFreePort('127.0.0.1')

export const tidyUp = async (): Promise<void> => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
  for (const server of silent.splice(0)) server.close()
  for (const directory of directories.splice(0)) await directory.release()
  for (const folder of folders.splice(0)) await removeFolder(folder)
}

type Diagnosis = {
  readonly ok: boolean
  readonly addresses: Record<string, string | null>
  readonly checks: readonly { check: string; status: string; detail: string; way_out?: string }[]
  readonly feeds: readonly { name: string; position: string | null; behind: number }[]
}

export const diagnosisOf = ({ stdout }: Ended): Diagnosis => JSON.parse(stdout) as Diagnosis

/** The details of findings by check. Each finding has instructions. */
export const findingsIn = (ended: Ended): Record<string, string> =>
  Object.fromEntries(
    diagnosisOf(ended)
      .checks.filter(({ status }) => status === 'finding')
      .map(({ check, detail, way_out }) => {
        expect(way_out, check).to.match(/^[A-Z].*\.$/)
        return [check, detail]
      }),
  )
