import { expect } from 'chai'
import { operationEntity } from '../../src/commands/entities.ts'
import { createLedger, handle, type Ledger } from '../../src/commands/handle.ts'
import { moveCheckpoint, acquireCheckpoint } from '../../src/feeds/checkpoints.ts'
import type { Database } from '../../src/ports.ts'
import { exportsFeed } from '../../src/processes/exports/exports.ts'
import { sources } from '../../src/processes/exports/sources.ts'
import { context } from '../commands/kit.ts'
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
      return begun().length === 2
    })
    expect(begun()).to.have.members([`operation-${id('op', 1)}`, `operation-${id('op', 4)}`])
  })
})
