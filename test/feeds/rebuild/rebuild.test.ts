import { expect } from 'chai'
import { READ_MODEL_NAMES } from '../../../projections/index.ts'
import { rebuildableOf } from '../../../src/feeds/rebuild/rebuildable.ts'
import { emptyTablesOfLog } from '../../../src/logIdentity/logIdentity.ts'
import {
  acceptDifferences,
  cancelRebuild,
  previousProjections,
  requestRebuild,
} from '../../../src/feeds/rebuild/requests.ts'
import { type Database, type Row, type Sql, Unavailable } from '../../../src/ports.ts'
import { rejectionOf } from '../../support/rejection.ts'
import type { MemoryLog } from '../../support/memoryStore.ts'
import { createRebuildHarness, type RebuildHarness, watchedStore, withChangedHandler } from './rebuildHarness.ts'
import { fillLog, foldedRows, rowsIn, useTestPostgres } from '../fixtures.ts'

describe('a rebuild of a read model', () => {
  const postgres = useTestPostgres()
  let log: MemoryLog
  let database: Database
  let harness: RebuildHarness

  const LATER_ORDER = `ord_${'9'.repeat(26)}`
  const appendOrder = async (): Promise<void> => {
    const { type, data, metadata } = log.events.find(event => event.type === 'OrderCreated') ?? expect.fail('no order')
    const created = { id: '00000000-0000-8000-a000-00000000beef', type, data, metadata }
    await log.open().append(`order-${LATER_ORDER}`, [created], 'no_stream')
  }

  beforeEach(async () => {
    log = await fillLog(8)
    database = await postgres.ledgerDatabase()
    harness = createRebuildHarness(database, log)
    await harness.project()
  })

  for (const name of READ_MODEL_NAMES)
    it(`of ${name} puts equal tables with equal indexes in the place of the live ones`, async () => {
      const { tables } = (await rebuildableOf(name)) ?? expect.fail(name)
      const rowsOfAll = () =>
        Promise.all(tables.map(table => database.sql(`select t::text from ${table} t order by 1`)))
      const indexes = () =>
        database.sql(
          `select indexdef from pg_indexes where schemaname = 'public' and tablename = any($1) order by indexname`,
          [tables],
        )
      const before = [await rowsOfAll(), await indexes()]
      const ids = await Promise.all(tables.map(harness.tableId))
      const id = await harness.request('rebuild', name)
      await harness.execute()
      const row = await harness.row(id)
      expect([row.state, row.error, row.difference]).to.deep.equal(['succeeded', null, null])
      expect(row.parity?.position).to.equal(String(log.head()))
      expect(row.parity?.tables.map(({ table }) => table)).to.deep.equal(tables)
      expect([await rowsOfAll(), await indexes()]).to.deep.equal(before)
      for (const [index, table] of tables.entries()) expect(await harness.tableId(table)).not.to.equal(ids[index])
      expect(await harness.tablesIn('ledger_rebuild')).to.deep.equal([])
      expect(await harness.tablesIn('ledger_previous')).to.deep.equal([...tables].toSorted())
    })

  it('of the books keeps the constraints that refuse an unbalanced entry, also after a reset', async () => {
    const refusal = async (): Promise<string> => {
      const entry = `insert into journal_entries_v1 (position, event_id, tenant_id, at, kind, order_id, invoice_id, currency)
        values (1, 'e', 'acme', now(), 'invoice', 'ord', 'inv', 'USD')`
      return (await rejectionOf(database.sql(entry)))?.message ?? ''
    }
    for (let round = 1; round <= 2; round += 1) {
      await harness.request('rebuild', 'books')
      await harness.execute()
      expect(await refusal(), `after rebuild ${round}`).to.include('is not balanced')
    }
    await database.transaction(emptyTablesOfLog)
    expect(await refusal(), 'after a reset').to.include('is not balanced')
    await harness.project()
    expect((await harness.row(await harness.request('verify', 'books'))).state).to.equal('pending')
    await harness.execute()
  })

  it('continues after a batch whose commit was answered when the rebuild had been read again', async () => {
    const large = await fillLog(60)
    const own = await postgres.ledgerDatabase()
    const { project, request, execute, row } = createRebuildHarness(own, large)
    await project()
    const id = await request('rebuild', 'audit')
    const { position: stale } = await row(id)
    const lost = new Unavailable('database', { effect: 'unknown' })
    let copies = 0
    const loses: Database = {
      ...own,
      transaction: async (work, timeoutMs) => {
        const result = await own.transaction(
          (sql, copy) => work(sql, copy && (added => ((copies += 1), copy(added)))),
          timeoutMs,
        )
        if (copies > 0) throw lost
        return result
      },
    }
    expect(await rejectionOf(execute({ database: loses }))).to.equal(lost)
    expect((await row(id)).position > stale).to.equal(true)
    const readBefore: Sql = async <R extends Row>(text: string, values?: readonly unknown[]) =>
      (await own.sql<R>(text, values)).map(actual => ('position' in actual ? { ...actual, position: stale } : actual))
    await execute({ database: { ...own, sql: readBefore } })
    const { state, error } = await row(id)
    expect([state, error]).to.deep.equal(['succeeded', null])
  })

  it('reports its progress in events', async () => {
    const id = await harness.request('rebuild', 'payments')
    await harness.execute()
    const { done, total, eta_seconds } = await harness.row(id)
    const events = log.events.filter(({ stream }) => stream.startsWith('payment-')).length
    expect([done, total, eta_seconds]).to.deep.equal([BigInt(events), BigInt(events), 0n])
  })

  it('is refused with the first difference when a handler was changed, and the live tables stay', async () => {
    const [live, before] = [await harness.tableId('payments_v1'), await harness.allRows()]
    const id = await harness.request('rebuild', 'payments')
    await harness.execute({ models: withChangedHandler() })
    const { state, difference } = await harness.row(id)
    expect(state).to.equal('refused')
    const succeeded = (await rowsIn(database, 'payments_v1')).filter(row => row['state'] === 'succeeded')
    expect(difference).to.deep.equal({
      table: 'payments_v1',
      key: succeeded.map(row => String(row['id'])).toSorted()[0],
      tenant_id: succeeded[0]?.['tenant_id'],
      column: 'failure_code',
      live: null,
      rebuilt: 'none',
      rows: succeeded.length,
    })
    expect([await harness.tableId('payments_v1'), await harness.allRows()]).to.deep.equal([live, before])
  })

  it('names the first row that only one of the two tables has', async () => {
    const [first] = await rowsIn(database, 'orders_v1')
    await database.sql('delete from orders_v1 where id = $1', [first?.['id']])
    const missing = await harness.request('verify', 'orders')
    await harness.execute()
    expect((await harness.row(missing)).difference).to.include({
      key: first?.['id'],
      column: null,
      live: null,
      rows: 1,
    })
    await database.sql(`insert into payments_v1 select * from payments_v1`).catch(() => undefined)
    await database.sql(`update payments_v1 set id = 'pay_zzz' where id = (select max(id) from payments_v1)`)
    const surplus = await harness.request('verify', 'payments')
    await harness.execute()
    expect((await harness.row(surplus)).difference).to.include({ rows: 2, column: null })
  })

  it('that was refused stays so after a request to verify, and is cancelled by a request to rebuild', async () => {
    await database.sql(`update orders_v1 set currency = 'XXX'`)
    const id = await harness.request('rebuild', 'orders')
    await harness.execute()
    const compared = await database.transaction(sql =>
      requestRebuild(sql, { id: 'op_compared', kind: 'verify', projection: 'orders', requested_by: 'operator' }),
    )
    expect(compared).to.deep.equal({ ok: false, code: 'under_way', id })
    expect(await harness.row(id)).to.include({ state: 'refused' })
    await harness.request('rebuild', 'orders')
    expect(await harness.row(id)).to.include({ state: 'cancelled' })
  })

  it('that was refused is switched when an operator accepts the difference', async () => {
    await database.sql(`update orders_v1 set currency = 'XXX'`)
    const id = await harness.request('rebuild', 'orders')
    await harness.execute()
    const refused = await harness.row(id)
    expect([refused.state, refused.difference?.column, refused.difference?.live]).to.deep.equal([
      'refused',
      'currency',
      'XXX',
    ])
    expect(await acceptDifferences(database.sql, id, 'the rows were changed by hand')).to.equal(true)
    await harness.execute()
    const row = await harness.row(id)
    expect([row.state, row.accepted_reason]).to.deep.equal(['succeeded', 'the rows were changed by hand'])
    expect(await rowsIn(database, 'orders_v1')).to.deep.equal((await foldedRows(log)).orders_v1)
    expect(await acceptDifferences(database.sql, id, 'again')).to.equal(false)
  })

  it('repairs a read model whose table was dropped, once an operator accepts the difference', async () => {
    await database.sql('drop table orders_v1')
    const id = await harness.request('rebuild', 'orders')
    await harness.execute()
    expect((await harness.row(id)).difference).to.include({ table: 'orders_v1', key: null, live: 'no such table' })
    await acceptDifferences(database.sql, id, 'the table was dropped')
    await harness.execute()
    expect(await rowsIn(database, 'orders_v1')).to.deep.equal((await foldedRows(log)).orders_v1)
  })

  it('that only verifies compares the tables, and drops its own', async () => {
    const live = await harness.tableId('invoices_v1')
    const id = await harness.request('verify', 'invoices')
    await harness.execute()
    const { state, difference, parity } = await harness.row(id)
    expect([state, difference, parity?.tables.length]).to.deep.equal(['succeeded', null, 1])
    expect(await harness.tableId('invoices_v1')).to.equal(live)
    expect(await harness.tablesIn('ledger_rebuild')).to.deep.equal([])
  })

  it('is rolled back to the earlier tables with the events since, and forward again', async () => {
    await database.sql(
      `update orders_v1 set customer_reference = 'by hand' where revision = (select max(revision) from orders_v1)`,
    )
    const wrong = await rowsIn(database, 'orders_v1')
    const id = await harness.request('rebuild', 'orders')
    await harness.execute()
    await acceptDifferences(database.sql, id, 'wrong')
    await harness.execute()
    const right = await rowsIn(database, 'orders_v1')
    expect(right).not.to.deep.equal(wrong)
    await harness.request('rollback', 'orders')
    await harness.execute()
    expect(await rowsIn(database, 'orders_v1')).to.deep.equal(wrong)
    await harness.request('rollback', 'orders')
    await harness.execute()
    expect(await rowsIn(database, 'orders_v1')).to.deep.equal(right)
  })

  it('whose own tables were dropped fails, and never writes or replaces the live ones', async () => {
    const refused = await harness.request('rebuild', 'payments')
    await harness.execute({ models: withChangedHandler() })
    await harness.request('rebuild', 'orders')
    await harness.execute()
    const before = await harness.allRows()
    await database.sql('drop table ledger_rebuild.payments_v1')
    await acceptDifferences(database.sql, refused, 'for a test')
    await database.sql('drop table ledger_previous.orders_v1')
    const rollback = await harness.request('rollback', 'orders')
    await harness.execute()
    for (const [id, table] of [
      [refused, 'payments_v1'],
      [rollback, 'orders_v1'],
    ] as const) {
      const { state, error } = await harness.row(id)
      expect([state, error]).to.deep.equal([
        'failed',
        `Error: The table ledger_rebuild.${table} does not exist any more.`,
      ])
    }
    expect(await harness.allRows()).to.deep.equal(before)
  })

  it('cannot be rolled back before the first rebuild', async () => {
    const target = { id: 'op_x', kind: 'rollback', projection: 'orders', requested_by: 'operator' } as const
    expect(await database.transaction(sql => requestRebuild(sql, target))).to.deep.equal({
      ok: false,
      code: 'nothing_kept',
    })
  })

  it('is accepted if an earlier rebuild of the same read model ends at that moment', async () => {
    const answers: object[][] = [[], [], [], [{ id: 'op_new' }]]
    const sql = async (): Promise<never[]> => (answers.shift() ?? []) as never[]
    const target = { id: 'op_new', kind: 'rebuild', projection: 'orders', requested_by: 'operator' } as const
    expect(await requestRebuild(sql, target)).to.deep.equal({ ok: true, id: 'op_new' })
    expect(answers).to.deep.equal([])
  })

  it('goes on from its checkpoint in the next process, which reads no event twice', async () => {
    const id = await harness.request('rebuild', 'payments')
    const events = log.events.filter(({ stream }) => stream.startsWith('payment-'))
    const stop = new AbortController()
    const half = Math.floor(events.length / 2)
    const dying = watchedStore(log, count => {
      if (count === half) stop.abort()
    })
    await harness.execute({ store: dying }, 1n, stop.signal).catch(() => undefined)
    const interrupted = await harness.row(id)
    expect([interrupted.state, interrupted.done > 0n]).to.deep.equal(['running', true])
    let read = 0
    await harness.execute({ store: watchedStore(log, () => void (read += 1)) }, 2n)
    expect((await harness.row(id)).state).to.equal('succeeded')
    expect(BigInt(read) + interrupted.done).to.equal(BigInt(events.length))
    expect(await rowsIn(database, 'payments_v1')).to.deep.equal((await foldedRows(log)).payments_v1)
  })

  it('of a process that was replaced writes nothing more', async () => {
    const id = await harness.request('rebuild', 'payments')
    const paused = watchedStore(log, async count => {
      if (count === 1) await harness.execute({}, 2n)
    })
    const old = await harness.execute({ store: paused }, 1n).catch((error: unknown) => error)
    expect((old as Error | undefined)?.name ?? 'ended').to.be.oneOf(['EpochSuperseded', 'ended'])
    expect((await harness.row(id)).state).to.equal('succeeded')
    expect(await rowsIn(database, 'payments_v1')).to.deep.equal((await foldedRows(log)).payments_v1)
  })

  it('that is cancelled ends with its batch, drops its tables, and leaves those of others', async () => {
    const refused = await harness.request('rebuild', 'payments')
    await harness.execute({ models: withChangedHandler() })
    const id = await harness.request('rebuild', 'orders')
    const cancelling = watchedStore(log, async count => {
      if (count === 1) expect(await cancelRebuild(database.sql, id)).to.equal(true)
    })
    await harness.execute({ store: cancelling })
    expect((await harness.row(id)).state).to.equal('cancelled')
    expect(await cancelRebuild(database.sql, id)).to.equal(false)
    expect(await harness.tablesIn('ledger_rebuild')).to.deep.equal(['payments_v1'])
    await acceptDifferences(database.sql, refused, 'for a test')
    await harness.execute()
    expect((await harness.row(refused)).state).to.equal('succeeded')
  })

  it('of a roll-back that is cancelled keeps the earlier tables for the next', async () => {
    await harness.request('rebuild', 'orders')
    await harness.execute()
    const kept = await harness.tableId('ledger_previous.orders_v1')
    const id = await harness.request('rollback', 'orders')
    await appendOrder()
    await harness.project()
    await harness.execute({ store: watchedStore(log, async () => void (await cancelRebuild(database.sql, id))) })
    expect((await harness.row(id)).state).to.equal('cancelled')
    expect(await harness.tableId('ledger_previous.orders_v1')).to.equal(kept)
    expect([...(await previousProjections(database.sql)).keys()]).to.deep.equal(['orders'])
    await harness.request('rollback', 'orders')
    await harness.execute()
    expect(await harness.tableId('orders_v1')).to.equal(kept)
    expect((await rowsIn(database, 'orders_v1')).map(({ id: of }) => of)).to.include(LATER_ORDER)
  })

  it('is refused while another of the same read model is open, and waits for those of other read models', async () => {
    const first = await harness.request('rebuild', 'orders')
    const again = { id: 'op_again', kind: 'rebuild', projection: 'orders', requested_by: 'operator' } as const
    const repeated = await database.transaction(sql => requestRebuild(sql, again))
    expect(repeated).to.deep.equal({ ok: false, code: 'under_way', id: first })
    const second = await harness.request('verify', 'payments')
    await harness.execute()
    expect([(await harness.row(first)).state, (await harness.row(second)).state]).to.deep.equal([
      'succeeded',
      'succeeded',
    ])
  })

  it('writes exactly the events that the live tables have', async () => {
    const id = await harness.request('rebuild', 'orders')
    await appendOrder()
    await harness.execute()
    expect((await harness.row(id)).state).to.equal('succeeded')
    expect((await rowsIn(database, 'orders_v1')).length).to.equal(8)
    await harness.project()
    expect((await rowsIn(database, 'orders_v1')).length).to.equal(9)
  })

  it('of a read model that this build does not have fails, and those after it go on', async () => {
    const unknown = await harness.request('rebuild', 'unknown')
    const known = await harness.request('rebuild', 'orders')
    await harness.execute()
    const row = await harness.row(unknown)
    expect([row.state, row.error]).to.deep.equal(['failed', 'Error: This build has no read model unknown.'])
    expect((await harness.row(known)).state).to.equal('succeeded')
  })
})
