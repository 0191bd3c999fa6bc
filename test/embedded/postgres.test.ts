import { execFile } from 'node:child_process'
import { chmod, chown, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { startFailure } from '../../src/embedded/postgres/cluster.ts'
import {
  endPrograms,
  pidsOf,
  POSTGRES,
  removeFolder,
  runPostgres,
  runProgram,
  temporaryFolder,
  query,
} from './childProcesses.ts'
import { eventually } from '../support/eventually.ts'
import { putPreparedCluster } from '../support/preparedCluster.ts'
import { findWorkingProgram } from '../support/programs.ts'

const addressOf = (lines: readonly string[]): string => lines.at(-1) ?? ''
const postmasterOf = async (dataDir: string): Promise<number> =>
  Number.parseInt(await readFile(join(dataDir, 'cluster/postmaster.pid'), 'utf8'), 10)

const isRoot = process.getuid?.() === 0
const canDropRights = isRoot && findWorkingProgram('setpriv', ['--bounding-set=-dac_override', 'true']) !== undefined
if (isRoot && !canDropRights)
  process.stdout.write('Postgres: no setpriv on the PATH works; not run: the cases of an ordinary user.\n')

/** The cases about an existing cluster begin with a copy of one; those about a first start run initdb. */
describe('embedded Postgres', () => {
  let folder: string
  let dataDir: string

  beforeEach(async () => {
    folder = await temporaryFolder()
    dataDir = join(folder, 'pg')
  })
  afterEach(async () => {
    await endPrograms()
    await eventually(async () => (await pidsOf(folder)).length === 0)
    await removeFolder(folder)
  })

  it('starts in a private folder, prints its address, and ends at SIGTERM with code 0', async () => {
    const postgres = runPostgres(dataDir, '--port', '0')
    const lines = await postgres.ready
    expect(lines).to.have.length(1)
    expect(addressOf(lines)).to.match(/^postgres:\/\/ledger:[\w-]{32}@127\.0\.0\.1:\d+\/ledger$/)
    expect((await stat(folder)).mode & 0o777).to.equal(0o700)
    const names = await query(addressOf(lines), 'select datname from pg_database order by 1')
    expect(names.map(row => row['datname'])).to.include.members(['ledger', 'eventstore'])
    postgres.process.kill('SIGTERM')
    expect(await postgres.exited).to.deep.equal({ code: 0, stderr: '' })
    expect(await pidsOf(dataDir)).to.deep.equal([])
  })

  it('keeps durability on, listens on the loopback only, and requires the password', async () => {
    const postgres = runPostgres(dataDir)
    const address = addressOf(await postgres.ready)
    const [row] = await query(
      address,
      `select current_setting('fsync') fsync, current_setting('synchronous_commit') commit, current_setting('full_page_writes') pages,
              current_setting('listen_addresses') host, current_setting('data_checksums') sums`,
    )
    expect(row).to.deep.equal({ fsync: 'on', commit: 'on', pages: 'on', host: '127.0.0.1', sums: 'on' })
    const other = new URL(address)
    other.password = 'guessed'
    expect(await query(other.href, 'select 1').catch(error => error.code)).to.equal('28P01')
    expect((await stat(join(dataDir, 'password'))).mode & 0o777).to.equal(0o600)
    expect((await stat(join(dataDir, 'postgres.log'))).mode & 0o777).to.equal(0o600)
  })

  it('keeps its data after SIGTERM and SIGINT', async () => {
    await putPreparedCluster(dataDir)
    const first = runPostgres(dataDir)
    const address = addressOf(await first.ready)
    await query(address, 'create table kept as select 42 as answer')
    first.process.kill('SIGTERM')
    expect((await first.exited).code).to.equal(0)
    const second = runPostgres(dataDir, '--port', new URL(address).port)
    expect(addressOf(await second.ready)).to.equal(address)
    expect(await query(address, 'select answer from kept')).to.deep.equal([{ answer: 42 }])
    second.process.kill('SIGINT')
    expect((await second.exited).code).to.equal(0)
  })

  it('ends its server when its supervisor is killed by SIGKILL, and starts again with the committed data', async () => {
    await putPreparedCluster(dataDir)
    const first = runPostgres(dataDir)
    const address = addressOf(await first.ready)
    await query(address, 'create table kept as select 42 as answer')
    first.process.kill('SIGKILL')
    await eventually(async () => (await pidsOf(join(dataDir, 'cluster'))).length === 0)
    const second = runPostgres(dataDir)
    expect(await query(addressOf(await second.ready), 'select answer from kept')).to.deep.equal([{ answer: 42 }])
  })

  it('takes the directory over from a stopped server that outlived its supervisor', async () => {
    await putPreparedCluster(dataDir)
    const first = runPostgres(dataDir)
    const address = addressOf(await first.ready)
    await query(address, 'create table kept as select 42 as answer')
    const orphan = await postmasterOf(dataDir)
    process.kill(orphan, 'SIGSTOP')
    first.process.kill('SIGKILL')
    await first.exited
    expect(await pidsOf(join(dataDir, 'cluster'))).to.deep.equal([orphan])
    const second = runPostgres(dataDir, '--port', new URL(address).port)
    expect(await query(addressOf(await second.ready), 'select answer from kept')).to.deep.equal([{ answer: 42 }])
    expect(await pidsOf(join(dataDir, 'cluster'))).to.deep.equal([await postmasterOf(dataDir)])
    expect(await postmasterOf(dataDir)).not.to.equal(orphan)
  })

  it('is not stopped by a postmaster.pid whose pid belongs to another program', async () => {
    await putPreparedCluster(dataDir)
    const first = runPostgres(dataDir)
    await first.ready
    const content = await readFile(join(dataDir, 'cluster/postmaster.pid'), 'utf8')
    first.process.kill('SIGTERM')
    await first.exited
    const bystander = runProgram(['-e', 'setInterval(() => {}, 1000)'])
    await writeFile(join(dataDir, 'cluster/postmaster.pid'), content.replace(/^\d+/, `${bystander.pid}`))
    const second = runPostgres(dataDir)
    await second.ready
    expect([bystander.process.exitCode, bystander.process.signalCode]).to.deep.equal([null, null])
  })

  it('reports the end of its server, and exits with code 1', async () => {
    await putPreparedCluster(dataDir)
    const postgres = runPostgres(dataDir)
    await postgres.ready
    process.kill(await postmasterOf(dataDir), 'SIGKILL')
    const { code, stderr } = await postgres.exited
    expect(code).to.equal(1)
    expect(stderr).to.equal(`Postgres ended unexpectedly (SIGKILL); its log is ${dataDir}/postgres.log.\n`)
  })

  it('starts anew after an interrupted first start', async () => {
    const first = runPostgres(dataDir)
    const isPartlyCreated = async () => {
      const name = (await readdir(dataDir).catch(() => [])).find(actual => actual.startsWith('cluster.unfinished'))
      return name !== undefined && (await readdir(join(dataDir, name))).includes('PG_VERSION')
    }
    await eventually(isPartlyCreated)
    first.process.kill('SIGKILL')
    await first.exited
    expect(await stat(join(dataDir, 'cluster')).catch(error => error.code)).to.equal('ENOENT')
    const second = runPostgres(dataDir)
    expect(await query(addressOf(await second.ready), 'select 1 as one')).to.deep.equal([{ one: 1 }])
  })

  it('refuses a port in use in one sentence, before it creates a cluster', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await eventually(() => server.listening)
    const address = server.address()
    const port = typeof address === 'object' ? address?.port : undefined
    const postgres = runPostgres(dataDir, '--port', `${port}`)
    expect(await postgres.exited).to.deep.equal({ code: 1, stderr: `Port ${port} on 127.0.0.1 is in use.\n` })
    expect(await stat(join(dataDir, 'cluster')).catch(error => error.code)).to.equal('ENOENT')
    server.close()
  })

  it('refuses a directory that is a file, and one without write access, in one sentence', async () => {
    await writeFile(dataDir, '')
    const onFile = await runPostgres(dataDir).exited
    expect(onFile).to.deep.equal({ code: 1, stderr: `The data directory ${dataDir} is not a directory (EEXIST).\n` })
    const closed = join(folder, 'closed')
    await mkdir(closed, { mode: 0o500 })
    // Root may write everywhere, unless it drops that capability.
    if (isRoot && !canDropRights) return
    const asOrdinary = isRoot ? ['setpriv', '--bounding-set=-dac_override', process.execPath] : [process.execPath]
    const refused = await runProgram([POSTGRES, '--data-dir', closed], asOrdinary).exited
    expect(refused).to.deep.equal({ code: 1, stderr: `The data directory ${closed} is not writable (EACCES).\n` })
  })

  it("refuses a directory in use in one sentence, with the holder's pid", async () => {
    await putPreparedCluster(dataDir)
    const first = runPostgres(dataDir)
    await first.ready
    const { code, stderr } = await runPostgres(dataDir).exited
    expect(code).to.equal(1)
    expect(stderr).to.equal(
      `The data directory ${dataDir} is in use by process ${first.pid}, which runs a service on it. Stop it first.\n`,
    )
  })

  it('refuses a cluster without its password', async () => {
    await putPreparedCluster(dataDir)
    const first = runPostgres(dataDir)
    await first.ready
    first.process.kill('SIGTERM')
    await first.exited
    await rm(join(dataDir, 'password'))
    const { code, stderr } = await runPostgres(dataDir).exited
    expect({ code, stderr }).to.deep.equal({
      code: 1,
      stderr: `The file ${dataDir}/password is missing: put it back, or remove ${dataDir}.\n`,
    })
  })

  it('reports a full disk in one sentence', async () => {
    const output = 'initdb: error: could not write file "base/1": No space left on device\ninitdb: removing contents'
    expect(startFailure(dataDir, 1, output).message).to.equal(
      `The data directory ${dataDir} has no space left on its disk.`,
    )
    // The rest needs a small file system, which not every machine permits to mount.
    await mkdir(dataDir)
    const mounted = await promisify(execFile)('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'none', dataDir]).then(
      () => true,
      () => false,
    )
    if (!mounted) return
    try {
      const { code, stderr } = await runPostgres(dataDir).exited
      expect({ code, stderr }).to.deep.equal({
        code: 1,
        stderr: `The data directory ${dataDir} has no space left on its disk.\n`,
      })
    } finally {
      await promisify(execFile)('umount', [dataDir])
    }
  })

  if (canDropRights) {
    it('needs no other user and no capabilities when it is started by an ordinary user', async () => {
      const nobody = 65_534
      await chmod(folder, 0o755)
      await mkdir(dataDir)
      await chown(dataDir, nobody, nobody)
      const command = ['setpriv', `--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups']
      // The user needs read access to the sources, which a clone in a private folder does not give.
      const rights = ['--inh-caps=+dac_read_search', '--ambient-caps=+dac_read_search', '--securebits=+no_setuid_fixup']
      const postgres = runProgram([POSTGRES, '--data-dir', dataDir], [...command, ...rights, process.execPath])
      expect(await query(addressOf(await postgres.ready), 'select 1 as one')).to.deep.equal([{ one: 1 }])
      expect((await stat(join(dataDir, 'cluster'))).uid).to.equal(nobody)
    })
  }
})
