import { access, mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { openDatabase } from '../../src/adapters/postgres/database.ts'
import { ownConnectionString } from '../../src/embedded/postgres/socket.ts'
import { eventually } from '../support/eventually.ts'
import { putPreparedCluster } from '../support/preparedCluster.ts'
import { type ServiceProcess, startProcess } from '../support/service.ts'
import { endPrograms, pidsOf, removeFolder, runPostgres, runProgram, temporaryFolder, query } from './childProcesses.ts'

/** The address of the client as the server sees it; null through a socket. */
const seenFrom = async (address: string): Promise<unknown> =>
  (await query(address, 'select inet_client_addr()::text as seen'))[0]?.['seen']

const LOOPBACK = '127.0.0.1/32'

describe('the socket of the embedded Postgres', () => {
  let folder: string
  let service: ServiceProcess | undefined

  beforeEach(async () => {
    service = undefined
    folder = await temporaryFolder()
  })
  afterEach(async () => {
    await service?.end('SIGTERM')
    await endPrograms()
    await eventually(async () => (await pidsOf(folder)).length === 0)
    await removeFolder(folder)
  })

  const start = async (dataDir: string, ...more: string[]) => {
    await putPreparedCluster(dataDir)
    const postgres = runPostgres(dataDir, ...more)
    const address = (await postgres.ready).at(-1) ?? ''
    return { postgres, address, own: await ownConnectionString(dataDir, address) }
  }

  it('is in a private folder, requires the password, and is served beside TCP', async () => {
    const dataDir = join(folder, 'pg')
    const { address, own } = await start(dataDir)
    expect(await seenFrom(address)).to.equal(LOOPBACK)
    expect(await seenFrom(own)).to.equal(null)
    expect((await stat(join(dataDir, 'socket'))).mode & 0o777).to.equal(0o700)
    const [parsed, tcp] = [new URL(own), new URL(address)]
    expect([parsed.hostname, parsed.port]).to.deep.equal([tcp.hostname, tcp.port])
    parsed.password = 'guessed'
    expect(await query(parsed.href, 'select 1').catch(error => error.code)).to.equal('28P01')
  })

  it('is found in a folder whose name has marks of lists and of URLs', async () => {
    const dataDir = join(folder, `p g,"q" %41+&ü'?#`)
    const { own } = await start(dataDir)
    expect(await seenFrom(own)).to.equal(null)
  })

  it('is not there where the path of the data directory is too long, and TCP serves', async () => {
    const dataDir = join(folder, 'long'.repeat(25), 'pg')
    await mkdir(dataDir, { recursive: true })
    const { address, own } = await start(dataDir)
    expect(own).to.equal(address)
    expect(await seenFrom(own)).to.equal(LOOPBACK)
  })

  it('is not used where it accepts no connections', async () => {
    const dataDir = join(folder, 'pg')
    const address = 'postgres://ledger:password@127.0.0.1:5432/ledger'
    expect(await ownConnectionString(dataDir, address)).to.equal(address)
    await mkdir(join(dataDir, 'socket'), { recursive: true })
    await writeFile(join(dataDir, 'socket/.s.PGSQL.5432'), '')
    expect(await ownConnectionString(dataDir, address)).to.equal(address)
  })

  it('has the same connection string after a server that was killed, whose pid another program has now', async () => {
    const dataDir = join(folder, 'pg')
    const first = await start(dataDir)
    const pidFile = join(dataDir, 'cluster/postmaster.pid')
    process.kill(Number.parseInt(await readFile(pidFile, 'utf8'), 10), 'SIGKILL')
    await first.postgres.exited
    const { port } = new URL(first.address)
    const lock = join(dataDir, `socket/.s.PGSQL.${port}.lock`)
    await access(join(dataDir, `socket/.s.PGSQL.${port}`))
    const bystander = runProgram(['-e', 'setInterval(() => {}, 1000)'])
    await writeFile(lock, (await readFile(lock, 'utf8')).replace(/^\d+/, `${bystander.pid}`))
    const second = await start(dataDir, '--port', port)
    expect(second.own).to.equal(first.own)
    expect(await seenFrom(first.own)).to.equal(null)
  })

  for (const processes of ['1', '3'])
    it(`is used by a service of ${processes} processes, whose published address is that of TCP`, async () => {
      service = await startProcess(join(folder, 'data'), { LEDGER_PROCESSES: processes })
      expect(service.addresses.postgres).to.match(/^postgres:\/\/ledger:[\w-]+@127\.0\.0\.1:\d+\/ledger$/)
      const database = openDatabase({ connectionString: service.addresses.postgres, applicationName: 'observer' })
      const { api } = service
      const addressesByName = async (): Promise<Map<string, string | null>> => {
        // The answer needs the pool of the requests.
        await fetch(`${api}/health/ready`)
        const rows = await database.sql<{ name: string; address: string | null }>(
          `select distinct application_name as name, host(client_addr) as address
           from pg_stat_activity where backend_type = 'client backend' order by address nulls first`,
        )
        return new Map(rows.map(({ name, address }) => [name, address]))
      }
      const own = ['eventstore-writer', 'ledger', 'ledger-feeds']
      await eventually(async () => {
        const names = await addressesByName()
        return own.every(name => names.has(name))
      })
      const { observer, ...others } = Object.fromEntries(await addressesByName())
      expect(observer).to.equal('127.0.0.1')
      expect(Object.values(others).filter(address => address !== null)).to.deep.equal([])
      await database.close()
    })
})
