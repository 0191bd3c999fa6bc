import { generateKeyPairSync } from 'node:crypto'
import { appendFile, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { openHeadFile } from '../../src/evidence/headFile.ts'
import { type SigningKey, signingKeyOf } from '../../src/evidence/heads.ts'
import { canonicalRecord } from '../../src/evidence/record.ts'
import { cutTree, rootAt } from '../../src/evidence/tree.ts'
import { EpochSuperseded } from '../../src/feeds/checkpoints.ts'
import type { Database, NewEvent } from '../../src/ports.ts'
import { headSigningFeed } from '../../src/processes/headSigning.ts'
import { createTables } from '../../src/schema/tables.ts'
import { hashOfLeaf, type HeadLine, isSignedBy, naiveRoot } from '../evidence/independent.ts'
import { useTestPostgres } from '../feeds/fixtures.ts'
import { eventually } from '../support/eventually.ts'
import { removeFolder } from '../support/folders.ts'
import { createMemoryLog, type MemoryLog } from '../support/memoryStore.ts'
import { rejectionOf } from '../support/rejection.ts'
import { temporaryDirectory } from '../support/service.ts'
import { createVirtualWorld } from '../support/virtualWorld.ts'
import { type DrivenRun, drive } from './harness.ts'

const EVERY_MS = 10_000

let events = 0
const event = (tenant = 'acme'): NewEvent => {
  events += 1
  const id = `00000000-0000-4000-8000-${events.toString().padStart(12, '0')}`
  return { id, type: 'OrderCreated', data: { n: events }, metadata: { tenant } }
}

describe('the sealing', () => {
  const postgres = useTestPostgres()
  const key: SigningKey = signingKeyOf(generateKeyPairSync('ed25519').privateKey)
  let database: Database
  let folder: string
  let log: MemoryLog
  let runs: DrivenRun[] = []
  let epoch = 0n
  let world = createVirtualWorld()
  let figures: (number | 'ended')[] = []

  beforeEach(async () => {
    database = await postgres.ledgerDatabase()
    await createTables(database, 'evidence')
    folder = await temporaryDirectory()
    log = createMemoryLog()
    world = createVirtualWorld()
    figures = []
  })
  afterEach(async () => {
    for (const run of runs) await run.stop().catch(() => undefined)
    runs = []
    await removeFolder(folder)
  })

  const path = (): string => join(folder, 'heads.jsonl')
  const feed = (on = log) =>
    headSigningFeed({
      database,
      store: on.open(),
      world,
      headFile: openHeadFile(path()),
      signingKey: () => Promise.resolve(key),
      everyMs: EVERY_MS,
      progressed: unsigned => figures.push(unsigned),
      ended: () => figures.push('ended'),
    })
  const start = async (on = log): Promise<DrivenRun> => {
    epoch += 1n
    const run = await drive(feed(on), on, epoch)
    runs.push(run)
    return run
  }
  const append = async (count: number, on = log): Promise<void> => {
    for (let n = 0; n < count; n += 1) await on.open().append(`order-${events}`, [event()], 'no_stream')
  }
  const linesIn = async (): Promise<string[]> =>
    (await readFile(path(), 'utf8').catch(() => '')).split('\n').filter(line => line !== '')
  const heads = async (): Promise<HeadLine[]> => (await linesIn()).map(line => JSON.parse(line) as HeadLine)
  const rootOf = (on: MemoryLog, size: number): string =>
    naiveRoot(on.events.slice(0, size).map(one => hashOfLeaf(canonicalRecord(one)))).toString('hex')
  const headOf = (size: number): Promise<HeadLine> =>
    eventually(async () => (await heads()).find(({ tree_size }) => tree_size === size))
  const stored = (): Promise<{ tree_size: bigint }[]> =>
    database.sql('select tree_size from evidence_heads order by generation, tree_size')
  /** The head is in the file before it is in Postgres. */
  const storedOf = (size: number) =>
    eventually(async () => (await stored()).some(row => row.tree_size === BigInt(size)))
  /** A run that has signed so many new events, all of the log. */
  const signed = async (count: number): Promise<DrivenRun> => {
    const run = await start()
    await append(count)
    await run.processNew()
    await storedOf(log.events.length)
    return run
  }
  const sealedAndStopped = async (count: number): Promise<void> => (await signed(count)).stop()
  /** A log with the first events of this one. */
  const firstEvents = async (count: number): Promise<MemoryLog> => {
    const copy = createMemoryLog()
    for (const { id, type, data, metadata, stream } of log.events.slice(0, count))
      await copy.open().append(stream, [{ id, type, data, metadata }], 'no_stream')
    return copy
  }

  it('signs the tree over all events, which anyone can compute again', async () => {
    const run = await start()
    for (const size of [1, 3, 40, 41]) {
      await append(size - log.events.length)
      await run.processNew()
      const head = await headOf(size)
      expect(head.root).to.equal(rootOf(log, size))
      expect(head.position).to.equal(String(log.head()))
      expect(isSignedBy(head, key.publicKey)).to.equal(true)
      expect(isSignedBy({ ...head, tree_size: size + 1 }, key.publicKey)).to.equal(false)
    }
  })

  it('waits between two heads, and signs none while nothing happens', async () => {
    const run = await signed(1)
    await run.processNew()
    await append(1)
    await run.processNew()
    const [first, second] = [await headOf(1), await headOf(2)]
    expect(Date.parse(second.time) - Date.parse(first.time)).to.be.at.least(EVERY_MS)
    expect((await heads()).map(({ tree_size }) => tree_size)).to.deep.equal([1, 2])
  })

  it('continues after a restart, with the heads that it has', async () => {
    await sealedAndStopped(5)
    await append(6)
    const second = await start()
    await second.processNew()
    const head = await headOf(11)
    expect(head).to.include({ previous_size: 5, root: rootOf(log, 11), generation: 1 })
    expect((await heads()).map(({ tree_size }) => tree_size)).to.deep.equal([5, 11])
  })

  it('seals nothing twice when two processes run it, and the older one writes no more', async () => {
    const older = await signed(4)
    const newer = await start()
    await append(3)
    expect(await rejectionOf(older.processNew())).to.be.instanceOf(EpochSuperseded)
    await newer.processNew()
    const head = await headOf(7)
    expect(head.root).to.equal(rootOf(log, 7))
    await append(1)
    expect(await rejectionOf(older.processNew())).to.be.instanceOf(EpochSuperseded)
    await newer.processNew()
    expect((await headOf(8)).root).to.equal(rootOf(log, 8))
    for (const { tree_size, root } of await heads()) expect(root).to.equal(rootOf(log, tree_size))
  })

  it('reports the events without a head, and nothing after its run, when another process may have the lease', async () => {
    const run = await signed(3)
    expect(figures).to.deep.equal([0, 3, 0])
    await run.stop()
    await append(1)
    await run.processNew()
    expect(figures.at(-1)).to.equal('ended')
  })

  it('takes a head that is in the file and not in Postgres, as after a kill between the two', async () => {
    await sealedAndStopped(3)
    await database.sql('delete from evidence_heads')
    await append(2)
    const next = await start()
    await next.processNew()
    expect((await headOf(5)).previous_size).to.equal(3)
    expect((await stored()).map(row => Number(row.tree_size))).to.include(3)
  })

  it('takes every head of the file that a restored Postgres lacks', async () => {
    const run = await start()
    for (const size of [2, 4, 6]) {
      await append(2)
      await run.processNew()
      await storedOf(size)
    }
    await run.stop()
    await database.sql('delete from evidence_heads where tree_size > 2')
    await start()
    const sizes = (await stored()).map(row => Number(row.tree_size)).toSorted((a, b) => a - b)
    expect(sizes).to.deep.equal((await heads()).map(({ tree_size }) => tree_size))
    expect(sizes).to.include.members([2, 4, 6])
  })

  it('removes a torn line of the file, and writes heads again that the file has lost', async () => {
    await sealedAndStopped(2)
    await appendFile(path(), '{"tree_size":9')
    const second = await start()
    await append(1)
    await second.processNew()
    await storedOf(3)
    expect((await heads()).map(({ tree_size }) => tree_size)).to.deep.equal([2, 3])
    await second.stop()
    await rm(path())
    await start()
    expect((await heads()).map(({ tree_size }) => tree_size)).to.deep.equal([2, 3])
  })

  it('signs no head that does not follow the last one, as over tables that were changed meanwhile', async () => {
    const run = await signed(5)
    await database.sql(`update evidence_leaves set hash = decode(repeat('00', 32), 'hex') where leaf = 1`)
    let refusal: unknown
    run.background.catch((error: unknown) => (refusal = error))
    await append(3)
    await run.processNew()
    await eventually(async () => refusal !== undefined || (await heads()).length > 1)
    expect(String(refusal)).to.match(/does not follow the last one, of 5 events/)
    expect((await heads()).map(({ tree_size }) => tree_size)).to.deep.equal([5])
    runs = []
  })

  it('has a tree that can be cut, with the nodes of each level that are over a leaf which is not kept', async () => {
    await sealedAndStopped(600)
    const nodes = async (): Promise<string> => {
      const text = 'select level, count(*) as nodes from evidence_nodes group by level order by level'
      const rows = await database.sql<{ level: number; nodes: bigint }>(text)
      return rows.map(row => `${row.level}: ${row.nodes}`).join(', ')
    }
    const left = new Map([
      [600, '4: 37, 8: 2'],
      [271, '4: 16, 8: 1'],
      [255, '4: 15'],
    ])
    for (const [size, expected] of left) {
      await cutTree(database.sql, size)
      expect(await nodes()).to.equal(expected)
      expect((await rootAt(database.sql, size)).toString('hex')).to.equal(rootOf(log, size))
    }
  })

  it('stops at a damaged file of heads, and says so', async () => {
    await writeFile(path(), 'no head\n')
    expect((await rejectionOf(start())).message).to.match(/^The last line of the file of heads is damaged/)
  })

  it('stops when the log ends before the signed events, as after a restore from an older backup', async () => {
    await sealedAndStopped(6)
    const restored = await firstEvents(4)
    const lost = await rejectionOf(start(restored))
    expect(lost.message).to.match(/^The log ends at position \d+, and events up to \d+ are signed: it was truncated/)
    expect(lost.message).to.include('evidence accept')
    await append(8, restored)
    expect((await rejectionOf(start(restored))).message).to.match(/^The signed event \S+ .* is not in the log/)
    expect(await heads()).to.have.length(1)
  })

  it('stops when the log and the tables were both restored and lack signed events, before anything else happens', async () => {
    await sealedAndStopped(6)
    await cutTree(database.sql, 4)
    await database.sql('delete from evidence_heads')
    const next = await start(await firstEvents(4))
    expect((await rejectionOf(next.background)).message).to.match(/^The log has 4 events .* has 6 up to position \d+\./)
    runs = []
  })

  it('stops when the tables were lost and the log is not that of the file of heads', async () => {
    await sealedAndStopped(6)
    await database.sql('truncate evidence_leaves, evidence_nodes, evidence_heads')
    const other = createMemoryLog()
    await append(9, other)
    const next = await start(other)
    await next.processNew()
    expect((await rejectionOf(next.background)).message).to.match(/^The log differs from the head of 6 events/)
    runs = []
  })

  it('makes the tree again when the tables were lost, and goes on with the same heads', async () => {
    await sealedAndStopped(6)
    await database.sql('truncate evidence_leaves, evidence_nodes, evidence_heads')
    await append(1)
    const next = await start()
    await next.processNew()
    expect(await headOf(7)).to.include({ previous_size: 6, root: rootOf(log, 7) })
  })

  it('goes on when the newest signed event may be removed by a setting of its stream', async () => {
    await sealedAndStopped(3)
    const last = log.events.at(-1)
    const scavenged = await firstEvents(2)
    await scavenged.open().append(`$$${last?.stream}`, [{ ...event(), data: { $tb: 1 } }], 'no_stream')
    await append(1, scavenged)
    const next = await start(scavenged)
    await next.stop()
  })
})
