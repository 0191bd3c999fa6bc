import { expect } from 'chai'
import { BOOKS } from '../../projections/books/projection.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import { handle, type Ledger } from '../../src/commands/commandHandler.ts'
import { invoiceEntity, orderEntity } from '../../src/commands/entities.ts'
import { raise } from '../../src/commands/invoices.ts'
import { closePeriod } from '../../src/commands/periods.ts'
import { booksReadModel } from '../../src/feeds/booksWriter.ts'
import { positionOf } from '../../src/feeds/checkpoints.ts'
import { runFeeds } from '../../src/feeds/feedLoop.ts'
import { projectorOf } from '../../src/feeds/projector.ts'
import type { Database } from '../../src/ports.ts'
import { createTestLedger, useTestPostgres } from '../feeds/fixtures.ts'
import { createOrder, id } from '../streams/samples.ts'
import { eventually } from '../support/eventually.ts'
import { createMemoryLog, type MemoryLog } from '../support/memoryStore.ts'
import { context } from './fixtures.ts'

const CLOSED_DAY = '2026-01-10'
const INSIDE = '2026-01-10T12:00:00.000Z'
const OPEN = '2026-01-11T00:00:00.000Z'

describe('closing a period', () => {
  const postgres = useTestPostgres()
  let log: MemoryLog
  let ledger: Ledger
  let database: Database
  let storedAt: string
  let stop: AbortController
  let running: Promise<void>

  beforeEach(async () => {
    storedAt = INSIDE
    log = createMemoryLog(() => Date.parse(storedAt))
    ledger = createTestLedger(log)
    database = await postgres.ledgerDatabase()
    stop = new AbortController()
    const dependencies = { store: log.open(), database, world: realWorld(), report: () => undefined }
    running = runFeeds(
      'periods',
      [projectorOf(dependencies, [booksReadModel], () => undefined)],
      dependencies,
      stop.signal,
    )
  })
  afterEach(async () => {
    stop.abort()
    await running
  })

  /** Invoices that are not approved yet. */
  const drafts = async (count: number): Promise<void> => {
    const at = INSIDE
    for (let n = 1; n <= count; n += 1) {
      await handle(ledger, orderEntity, id('ord', n), {
        command: createOrder,
        context: context({ at }),
        load: 'assume_empty',
      })
      const terms = { due_date: '2026-03-01', metadata: {}, idempotencyRecord: null }
      await raise(ledger, { id: id('inv', n), order_id: id('ord', n), ...terms }, context({ at }))
    }
  }
  const close = () => {
    const dependencies = { ledger, sql: database.sql, bookedUpTo: () => positionOf(database.sql, BOOKS) }
    // As a caller does, it repeats the command while the books are behind.
    return eventually(async () => {
      const outcome = await closePeriod(dependencies, { through: CLOSED_DAY, reason: 'audited' }, context())
      return outcome.kind !== 'behind' && outcome
    })
  }
  const approve = async (n: number): Promise<void> => {
    const command = { type: 'ApproveInvoice' as const, approved_by: 'boss' }
    const { ok } = await handle(ledger, invoiceEntity, id('inv', n), { command, context: context({ at: INSIDE }) })
    expect(ok).to.equal(true)
  }
  const entries = async (): Promise<{ at: string; position: bigint }[]> => {
    await eventually(async () => (await positionOf(database.sql, BOOKS)) >= log.head())
    return database.sql('select at, position from journal_entries_v1 order by position')
  }

  it('keeps its entries, and dates later ones in the first open day', async () => {
    await drafts(2)
    await approve(1)
    expect(await close()).to.include({ kind: 'closed' })
    const closed = await entries()
    expect(closed.map(({ at }) => at)).to.deep.equal([INSIDE])
    await approve(2)
    expect((await entries()).map(({ at }) => at)).to.deep.equal([INSIDE, OPEN])
  })

  it('while entries are written has each of them in the closing, or dated after it', async () => {
    await drafts(24)
    for (const n of [1, 2, 3, 4]) await approve(n)
    const approveOthers = async (): Promise<void> => {
      for (let n = 5; n <= 24; n += 1) await approve(n)
    }
    const [closed] = await Promise.all([close(), approveOthers()])
    const { complete_to } = closed.kind === 'closed' ? closed.last : expect.fail(closed.kind)
    const written = await entries()
    expect(written).to.have.length(24)
    for (const { at, position } of written) expect(at).to.equal(position <= complete_to ? INSIDE : OPEN)
  })

  it('has the entries of decisions that were stored late on the day of their storage', async () => {
    await drafts(1)
    storedAt = '2026-01-12T08:00:00.000Z'
    await approve(1)
    expect(await close()).to.include({ kind: 'closed' })
    expect((await entries()).map(({ at }) => at)).to.deep.equal(['2026-01-12T07:59:57.000Z'])
  })
})
