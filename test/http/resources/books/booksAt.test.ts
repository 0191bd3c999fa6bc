import { expect } from 'chai'
import { booksReadModel } from '../../../../src/feeds/booksWriter.ts'
import { projectorOf } from '../../../../src/feeds/projector.ts'
import { realWorld } from '../../../../src/lib/clockAndRandomness.ts'
import { createConcurrencyLimits } from '../../../../src/http/admission/concurrencyLimits.ts'
import { DEFAULT_CONCURRENCY_LIMITS } from '../../../../src/settings/limits.ts'
import { type AsOf, booksAt } from '../../../../src/http/resources/books/booksAt.ts'
import { createTail } from '../../../../src/http/reading/tail.ts'
import type { Database, World } from '../../../../src/ports.ts'
import { feedAll, useTestPostgres } from '../../../feeds/fixtures.ts'
import { BEGINNING, logOf } from '../../../projections/moneyHistories.ts'
import type { MemoryLog } from '../../../support/memoryStore.ts'
import { rejectionOf } from '../../../support/rejection.ts'
import { createVirtualWorld } from '../../../support/virtualWorld.ts'

/** A time after every event of these histories. */
const LATER = '2026-02-01T00:00:00Z'
/** A clock on which the time limit of a request is two minutes, for a machine under load. */
const SLOWER = 24
const LIMIT_MIN_MS = 1_000
const slowWorld = (): World => {
  const { sleep, monotonicMs, ...world } = realWorld()
  return {
    ...world,
    monotonicMs: () => monotonicMs() / SLOWER,
    sleep: (timeMs, signal) => sleep(timeMs < LIMIT_MIN_MS ? timeMs : timeMs * SLOWER, signal),
  }
}
const NONE = '00000000-0000-8000-a000-00000000beef'

describe('the position as of which the books are answered', () => {
  const postgres = useTestPostgres()
  let database: Database
  let log: MemoryLog

  /** As a request asks; a virtual world does not wait in real time. */
  const ask = (
    requested: AsOf,
    world: World = createVirtualWorld(),
    pinned?: bigint,
    minPosition?: bigint,
  ): Promise<bigint> =>
    booksAt(
      {
        ledger: { store: log.open(), world },
        database,
        tail: createTail({ database, connections: 3, world }),
        concurrencyLimits: createConcurrencyLimits(DEFAULT_CONCURRENCY_LIMITS),
        principal: { tenant: 'acme', subject: 'reader', client: 'tests' },
        prefer: { respondAsync: false, waitMs: undefined },
        minPosition,
      } as never,
      requested,
      pinned,
    )
  const expectBehind = async (requested: AsOf, pinned?: bigint): Promise<Chai.Assertion> =>
    expect(await rejectionOf(ask(requested, undefined, pinned))).to.include({ code: 'projection_behind' })
  const feed = (upTo = log.head()): Promise<void> =>
    feedAll(
      projectorOf({ database, store: log.open(), world: realWorld() }, [booksReadModel], () => undefined),
      { ...log, events: log.events.filter(({ position }) => position <= upTo) },
    )
  const approvals = (): readonly bigint[] =>
    log.events.filter(({ type }) => type === 'InvoiceApproved').map(({ position }) => position)

  beforeEach(async () => {
    log = await logOf(BEGINNING)
    database = await postgres.ledgerDatabase()
  })

  it('is refused until the books have had every event once; after that they may lag', async () => {
    await expectBehind({})
    await feed(approvals()[0])
    await expectBehind({})
    await feed()
    expect(await ask({})).to.equal(log.head())
    await database.sql('update checkpoints set position = $1', [approvals()[0]])
    expect(await ask({})).to.equal(approvals()[0])
  })

  it('is that of the last entry up to the time, at once if the tenant has a later entry', async () => {
    await feed()
    await ask({})
    const [first = 0n, second = 0n] = approvals()
    const [row] = await database.sql<{ at: string }>('select at from journal_entries_v1 where position = $1', [first])
    await database.sql('update checkpoints set position = $1', [second])
    expect(await ask({ as_of: row?.at })).to.equal(first)
    expect(await ask({ as_of: '2020-01-01T00:00:00Z' })).to.equal(0n)
  })

  it('needs every event of the log for a time after the last entry', async () => {
    await feed()
    await ask({})
    expect(await ask({ as_of: LATER })).to.equal(approvals().at(-1))
    const last = approvals().at(-1)
    await database.sql('delete from journal_entries_v1 where position = $1', [last])
    await database.sql('update checkpoints set position = $1', [approvals()[1]])
    await expectBehind({ as_of: LATER })
  })

  it('does not round a time up to that of a later entry', async () => {
    await feed()
    await ask({})
    const [first = 0n] = approvals()
    const [row] = await database.sql<{ at: string }>('select at from journal_entries_v1 where position = $1', [first])
    const before = new Date(Date.parse(row?.at ?? '') - 1).toISOString()
    expect(await ask({ as_of: before.replace('Z', '999999Z') })).to.equal(0n)
  })

  const park = (position: bigint, tenant = 'acme') =>
    database.sql(
      `insert into parked_facts (delivery, position, key, stream, revision, event_id, type, tenant_id, reason, attempts,
        first_failed_at) values ('journal_entries_v1', $1, $2, $2, 0, 'event', 'InvoiceApproved', $3, 'no', 1, now())`,
      [position, `key-${position}-${tenant}`, tenant],
    )

  for (const tenant of ['acme', ''])
    it(`is before the first dead letter of ${tenant === '' ? 'an unknown tenant' : 'the tenant'}`, async () => {
      await feed()
      await ask({})
      const [first = 0n, second = 0n, third = 0n] = approvals()
      const [row] = await database.sql<{ at: string }>('select at from journal_entries_v1 where position = $1', [first])
      await park(third, tenant)
      await park(0n, 'another')
      expect(await ask({ as_of: row?.at })).to.equal(first)
      expect(await ask({})).to.equal(third - 1n)
      await database.sql('delete from journal_entries_v1 where position = $1', [second])
      await park(second, tenant)
      expect(await ask({})).to.equal(second - 1n)
      expect(await ask({ as_of_position: String(second - 1n) })).to.equal(second - 1n)
      expect(await ask({}, undefined, second - 1n)).to.equal(second - 1n)
      expect(await ask({ as_of: '2020-01-01T00:00:00Z' })).to.equal(0n)
      for (const requested of [{ as_of: row?.at }, { as_of: LATER }, { as_of_position: String(second) }])
        await expectBehind(requested)
      await expectBehind({}, second)
      expect(await ask({}, undefined, undefined, second - 1n)).to.equal(second - 1n)
      expect(await rejectionOf(ask({}, undefined, undefined, second))).to.include({ code: 'projection_behind' })
    })

  it('does not wait for events that make no entry', async () => {
    await feed()
    await ask({})
    const metadata = log.events[0]?.metadata ?? expect.fail()
    const other = { id: NONE, type: 'SecretMade', data: {}, metadata }
    await log.open().append('secret-sec_00000000000000000000000001', [other], 'no_stream')
    expect(await ask({ as_of: LATER })).to.equal(approvals().at(-1))
    expect(await ask({ as_of_position: String(log.head()) })).to.equal(log.head())
  })

  it('waits for the projector', async () => {
    await feed(approvals()[1])
    await database.sql(`insert into complete_read_models (name) values ('journal_entries_v1')`)
    const requested = ask({ as_of: LATER }, slowWorld())
    await feed()
    expect(await requested).to.equal(approvals().at(-1))
  })

  it('is refused for a position that the log has not reached, and for a time together with a position', async () => {
    await feed()
    await ask({})
    await expectBehind({ as_of_position: String(log.head() + 1n) })
    await expectBehind({}, log.head() + 1n)
    const both = await rejectionOf(ask({ as_of: LATER, as_of_position: '1' }))
    expect(both).to.include({ code: 'validation_failed' })
  })
})
