import { expect } from 'chai'
import { csv } from '../../src/adapters/files/csv.ts'
import { jsonl } from '../../src/adapters/files/jsonl.ts'
import { parquet } from '../../src/adapters/files/parquet.ts'
import { operationEntity } from '../../src/commands/entities.ts'
import { createLedger, handle, type Ledger } from '../../src/commands/commandHandler.ts'
import { moveCheckpoint, acquireCheckpoint } from '../../src/feeds/checkpoints.ts'
import type { Database } from '../../src/ports.ts'
import { exportsFeed } from '../../src/processes/exports/exports.ts'
import { sources } from '../../src/processes/exports/sources.ts'
import { context } from '../commands/fixtures.ts'
import { startTestPostgres, type TestPostgres, until } from '../feeds/fixtures.ts'
import { id, requestExport } from '../streams/samples.ts'
import { createMemoryLog, type MemoryLog } from '../support/memoryStore.ts'
import { createHeldWorld, type DrivenRun, drive, type HeldWorld } from './harness.ts'

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }
/** Wakes the process, and lets no time pass: an attempt that failed is not tried again. */
const AT_ONCE_MS = 0
const EPOCH = 1n

describe('exports of several tenants', function () {
  this.timeout(60_000)
  let postgres: TestPostgres
  let database: Database
  let log: MemoryLog
  let world: HeldWorld
  let ledger: Ledger
  let driven: DrivenRun

  before(async () => {
    postgres = await startTestPostgres()
  })
  after(() => postgres.stop())
  beforeEach(async () => {
    database = await postgres.ledgerDatabase()
    log = createMemoryLog()
    world = createHeldWorld()
    ledger = createLedger(log.open(), world)
    driven = await drive(exportsFeed({ database, ledger, formats: {} as never, log: silent }), log)
  })
  afterEach(() => driven.stop())

  const request = (n: number, tenant: string) =>
    handle(ledger, operationEntity, id('op', n), { command: requestExport, context: context({ tenant }), isNew: true })
  /** The read model has everything that was written, so that an export need not wait for it. */
  const reflect = async (): Promise<void> => {
    const { name } = sources[requestExport.resource]
    await acquireCheckpoint(database.sql, name, EPOCH)
    await moveCheckpoint(database.sql, [name], log.head(), EPOCH)
  }
  const begun = (): readonly string[] =>
    log.events.flatMap(({ type, stream }) => (type === 'OperationStarted' ? [stream] : []))

  it('are begun one of each, although one tenant has asked for several before', async () => {
    for (const n of [1, 2, 3]) await request(n, 'many')
    await request(4, 'one')
    await reflect()
    await driven.processNew()
    await until(async () => {
      await world.pass(AT_ONCE_MS)
      return begun().length >= 2
    })
    // An attempt fails for want of formats, so that others may have begun since.
    expect(begun().slice(0, 2)).to.have.members([`operation-${id('op', 1)}`, `operation-${id('op', 4)}`])
  })
})

describe('an export', function () {
  this.timeout(60_000)
  const LOOKS = 3
  let postgres: TestPostgres

  before(async () => {
    postgres = await startTestPostgres()
  })
  after(() => postgres.stop())

  it('begins once its read model has everything that was written before the request', async () => {
    const database = await postgres.ledgerDatabase()
    const log = createMemoryLog()
    const world = createHeldWorld()
    const ledger = createLedger(log.open(), world)
    let looks = 0
    const watched: Database = {
      ...database,
      sql: (text, values) => {
        if (text.includes('from checkpoints')) looks += 1
        return database.sql(text, values)
      },
    }
    const { name } = sources[requestExport.resource]
    await acquireCheckpoint(database.sql, name, EPOCH)
    const driven = await drive(exportsFeed({ database: watched, ledger, formats: {} as never, log: silent }), log)
    await handle(ledger, operationEntity, id('op', 1), { command: requestExport, context: context(), isNew: true })
    await moveCheckpoint(database.sql, [name], log.head() - 1n, EPOCH)
    const hasBegun = (): boolean => log.events.some(({ type }) => type === 'OperationStarted')
    await driven.processNew()
    looks = 0
    await until(async () => {
      await world.pass(AT_ONCE_MS)
      return looks >= LOOKS || hasBegun()
    })
    expect(hasBegun()).to.equal(false)
    await moveCheckpoint(database.sql, [name], log.head(), EPOCH)
    await until(async () => {
      await world.pass(AT_ONCE_MS)
      return hasBegun()
    })
    await driven.stop()
  })
})

describe('an export whose attempt a replaced worker has superseded', function () {
  this.timeout(60_000)
  const RETRY_MS = 1_000
  let postgres: TestPostgres

  before(async () => {
    postgres = await startTestPostgres()
  })
  after(() => postgres.stop())

  it('is attempted again, since the replaced worker does not complete it', async () => {
    const database = await postgres.ledgerDatabase()
    const log = createMemoryLog()
    const world = createHeldWorld()
    const ledger = createLedger(log.open(), world)
    const operation = id('op', 1)
    const replacedWorker = createLedger(log.open(), world)
    let isSuperseded = false
    const interrupted: Database = {
      ...database,
      snapshot: async work => {
        const made = await database.snapshot(work)
        if (!isSuperseded) {
          isSuperseded = true
          const command = { type: 'StartAttempt' as const, run: 'of the replaced worker' }
          const started = await handle(replacedWorker, operationEntity, operation, { command, context: context() })
          expect(started.ok).to.equal(true)
        }
        return made
      },
    }
    const formats = { jsonl, csv, parquet }
    const driven = await drive(exportsFeed({ database: interrupted, ledger, formats, log: silent }), log)
    const asked = await handle(ledger, operationEntity, operation, {
      command: requestExport,
      context: context(),
      isNew: true,
    })
    expect(asked.ok).to.equal(true)
    const { name } = sources[requestExport.resource]
    await acquireCheckpoint(database.sql, name, EPOCH)
    await moveCheckpoint(database.sql, [name], log.head(), EPOCH)
    await driven.processNew()
    await until(async () => {
      await world.pass(RETRY_MS)
      return log.events.some(({ type }) => type === 'ExportCompleted')
    })
    const started = log.events.filter(({ type }) => type === 'OperationStarted')
    expect(started).to.have.length(3)
    await driven.stop()
  })
})
