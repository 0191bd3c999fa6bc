import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { openDatabase } from '../../src/adapters/postgres/database.ts'
import { type Attempt, bytesOf, fileSink } from '../../src/processes/exports/exportFiles.ts'
import { createLedgerTables } from '../../src/feeds/ledgerTables.ts'
import { type Database, Unavailable } from '../../src/ports.ts'
import { endPrograms, pidsOf, removeFolder, runPostgres, temporaryFolder } from '../embedded/childProcesses.ts'
import { eventually } from '../support/eventually.ts'
import { putPreparedCluster } from '../support/preparedCluster.ts'

const CHUNK_BYTES = 256 * 1024
const CHUNKS = 5
/** For a machine under load. */
const STATEMENT_TIMEOUT_MS = 60_000
const file = Buffer.from(Array.from({ length: CHUNKS * CHUNK_BYTES }, (_, at) => (at * 7 + (at >> 8)) % 256))
const sha256 = createHash('sha256').update(file).digest('hex')
const written = { byte_count: file.length, sha256 }
const FIRST_CHUNKS = 3
const firstPart = file.subarray(0, FIRST_CHUNKS * CHUNK_BYTES + 1)
const rest = file.subarray(firstPart.length)

const sendTo = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(pid, signal)
  } catch {
    // It has ended.
  }
}

describe('the chunks of an export whose Postgres crashes', () => {
  let folder: string
  let dataDir: string
  let address: string
  let database: Database
  const stopped: number[] = []

  const start = async (port: string): Promise<void> => {
    address = (await runPostgres(dataDir, '--port', port).ready).at(-1) ?? ''
  }
  const pids = async (condition = 'true'): Promise<number[]> =>
    (await database.sql<{ pid: number }>(`select pid from pg_stat_activity where ${condition}`)).map(({ pid }) => pid)
  /** Without the process that writes the log of Postgres in the background. */
  const stopFlushing = async (): Promise<void> => {
    for (const pid of await pids(`backend_type = 'walwriter'`)) {
      stopped.push(pid)
      sendTo(pid, 'SIGSTOP')
    }
  }
  /** The server is killed with all that it has not written, and starts again. */
  const crash = async (): Promise<void> => {
    const children = await pids()
    const postmaster = Number.parseInt(await readFile(join(dataDir, 'cluster/postmaster.pid'), 'utf8'), 10)
    for (const pid of [postmaster, ...children]) sendTo(pid, 'SIGKILL')
    await start(new URL(address).port)
    await eventually(() => database.sql('select 1').catch(() => false))
  }
  const chunksOf = async (attempt: Attempt): Promise<number> => {
    const text = 'select count(*)::int as count from export_chunks where operation_id = $1 and attempt = $2'
    const [row] = await database.sql<{ count: number }>(text, [attempt.id, attempt.attempt])
    return row?.count ?? 0
  }
  const stored = async (attempt: Attempt): Promise<Buffer> => {
    const pieces: Uint8Array[] = []
    for await (const piece of bytesOf(database.sql, attempt, { first: 0n, end: BigInt(file.length) }))
      pieces.push(piece)
    return Buffer.concat(pieces)
  }

  beforeEach(async () => {
    folder = await temporaryFolder()
    dataDir = join(folder, 'pg')
    await putPreparedCluster(dataDir)
    await start('0')
    database = openDatabase({ connectionString: address, statementTimeoutMs: STATEMENT_TIMEOUT_MS })
    await createLedgerTables(database)
    await stopFlushing()
  })
  afterEach(async () => {
    await database.close()
    // A server does not end before its stopped processes do.
    for (const pid of stopped.splice(0)) sendTo(pid, 'SIGCONT')
    await endPrograms()
    await eventually(async () => (await pidsOf(folder)).length === 0)
    await removeFolder(folder)
  })

  it('are all there when it crashes after the end of the file', async () => {
    const attempt = { id: 'op_1', attempt: 1 }
    const sink = fileSink(database.sql, attempt)
    await sink.write(file)
    expect(await sink.end()).to.deep.equal(written)
    await crash()
    expect((await stored(attempt)).equals(file)).to.equal(true)
  })

  it('are no file when some are lost before its end, and the next attempt begins anew', async () => {
    const attempt = { id: 'op_1', attempt: 1 }
    const sink = fileSink(database.sql, attempt)
    await sink.write(firstPart)
    await eventually(async () => (await chunksOf(attempt)) === FIRST_CHUNKS)
    await crash()
    const isLost = (await chunksOf(attempt)) < FIRST_CHUNKS
    const ended = await sink
      .write(rest)
      .then(sink.end)
      .catch((error: unknown) => error)
    if (isLost) expect(ended).to.be.instanceOf(Unavailable)
    else expect(ended).to.deep.equal(written)
    await stopFlushing()
    const next = { id: 'op_1', attempt: 2 }
    const again = fileSink(database.sql, next)
    await again.write(file)
    expect(await again.end()).to.deep.equal(written)
    await crash()
    expect((await stored(next)).equals(file)).to.equal(true)
  })
})
