import { expect } from 'chai'
import { READ_MODEL_TABLES } from '../../../projections/index.ts'
import { booksReadModel } from '../../../src/feeds/booksWriter.ts'
import { projectorOf } from '../../../src/feeds/projector.ts'
import { realWorld } from '../../../src/lib/clockAndRandomness.ts'
import type { Database } from '../../../src/ports.ts'
import { booksCheck } from '../../../scripts/ledger/verify/books.ts'
import type { Outcome } from '../../../scripts/ledger/verify/check.ts'
import { feedAll, useTestPostgres } from '../../feeds/fixtures.ts'
import { BEGINNING, logOf } from '../../projections/moneyHistories.ts'
import type { MemoryLog } from '../../support/memoryStore.ts'
import { createVirtualWorld } from '../../support/virtualWorld.ts'

const ORDERS = 3

describe('ledger verify, books', () => {
  const postgres = useTestPostgres()
  let database: Database
  let log: MemoryLog

  const verify = (of = log, store = of.open()): Promise<Outcome> =>
    booksCheck.run({
      texts: { after: '' },
      store,
      database,
      config: undefined as never,
      world: createVirtualWorld(),
      startProgress: () => ({ update: () => undefined, advance: () => undefined, end: () => undefined }),
      signal: new AbortController().signal,
    })
  /** Changes rows as somebody would who can switch the constraints off. */
  const tamper = (statement: string): Promise<unknown> =>
    database.transaction(async sql => {
      await sql('set local session_replication_role = replica')
      await sql(statement)
    })
  const contentAfter = async (statement: string): Promise<Outcome['findings']> => {
    await tamper(statement)
    return (await verify()).findings
  }

  before(async () => {
    const step = { key: 1, amount: 400n, skewMs: 0 }
    const kinds = ['pay', 'refund', 'defer', 'settle'] as const
    const steps = Array.from({ length: ORDERS }, (_, n) => kinds.map(kind => [{ ...step, kind, order: n + 1 }]))
    log = await logOf([...BEGINNING, ...steps.flat()])
    database = await postgres.ledgerDatabase()
  })
  beforeEach(async () => {
    await database.sql(`truncate ${READ_MODEL_TABLES.join(', ')}, checkpoints`)
    const feed = projectorOf({ database, store: log.open(), world: realWorld() }, [booksReadModel], () => undefined)
    await feedAll(feed, log)
  })

  it('derives everything from the log, agrees, and changes nothing', async () => {
    const before = await database.sql('select t::text from account_balances_v1 t order by 1')
    const { findings, counts, detail } = await verify()
    expect(findings).to.deep.equal([])
    expect(detail).to.match(/entries, \d+ postings and the balances of \d+ accounts .* and agree\.$/)
    expect(counts).to.deep.include({ entries: 9n, postings: 18n })
    expect(await database.sql('select t::text from account_balances_v1 t order by 1')).to.deep.equal(before)
  })

  it('finds that nothing was compared, where rows and checkpoint are gone', async () => {
    await tamper(`truncate ${READ_MODEL_TABLES.join(', ')}, checkpoints`)
    expect((await verify()).findings.map(({ kind }) => kind)).to.deep.equal(['not_compared'])
  })

  it('names the row, both values and the event of a wrong amount', async () => {
    const [entry] = await database.sql<{ position: bigint; event_id: string }>(
      `select position, event_id from journal_entries_v1 where kind = 'payment_received' order by position limit 1`,
    )
    const findings = await contentAfter(
      `update journal_postings_v1 set amount = 401 where position = ${entry?.position} and line = 0`,
    )
    expect(findings).to.have.length(1)
    expect(findings[0]?.place).to.deep.equal({
      table: 'journal_postings_v1',
      position: String(entry?.position),
      line: '0',
      event_id: entry?.event_id,
      column: 'amount',
      stored: '401',
      derived: '400',
    })
    expect(findings[0]?.detail).to.include('amount is 401, by the log 400').and.include(String(entry?.event_id))
  })

  it('names a wrong balance, account, time and customer', async () => {
    for (const [statement, column] of [
      [
        `update account_balances_v1 set credits = credits + 1 where account = 'revenue.USD' and position = (
          select min(position) from account_balances_v1 where account = 'revenue.USD')`,
        'credits',
      ],
      [`update accounts_v1 set customer_reference = 'other' where code = 'receivables.USD.C-1'`, 'customer_reference'],
      [
        `update journal_entries_v1 set at = at + interval '1 second' where position = (
          select max(position) from journal_entries_v1)`,
        'at',
      ],
      [`update book_customers_v1 set customer_reference = 'other' where id like 'inv_%1'`, 'customer_reference'],
    ] as const) {
      const findings = await contentAfter(statement)
      expect(
        findings.map(({ place }) => place?.['column']),
        statement,
      ).to.include(column)
      await database.sql(`truncate ${READ_MODEL_TABLES.join(', ')}, checkpoints`)
      await feedAll(
        projectorOf({ database, store: log.open(), world: realWorld() }, [booksReadModel], () => undefined),
        log,
      )
    }
  })

  it('names a row that is missing, and one without an event', async () => {
    const missing = await contentAfter(
      `delete from account_balances_v1 where account = 'cash.USD' and position = (
        select min(position) from account_balances_v1 where account = 'cash.USD')`,
    )
    expect(missing.map(({ kind }) => kind)).to.deep.equal(['missing'])
    const surplus = await contentAfter(`insert into accounts_v1 values ('acme', 'cash.CHF', 'cash', 'CHF', null, 1)`)
    expect(surplus.map(({ kind }) => kind)).to.deep.equal(['surplus', 'missing'])
  })

  it('reports once that the log ends before the books, in place of each row', async () => {
    const { findings } = await verify(await logOf([]))
    expect(findings.map(({ kind }) => kind)).to.deep.equal(['log_ends_early'])
  })

  it('names rows of positions that the books have not reached, since they are served', async () => {
    const beyond = log.head() + 1_000n
    const findings = await contentAfter(
      `insert into account_balances_v1 (tenant_id, account, position, change, debits, credits, pending)
        values ('acme', 'cash.USD', ${beyond}, 5, 5, 0, 0);
       insert into accounts_v1 values ('acme', 'cash.CHF', 'cash', 'CHF', null, ${beyond})`,
    )
    expect(findings.map(({ kind, place }) => [kind, place?.['table']])).to.deep.equal([
      ['surplus', 'accounts_v1'],
      ['surplus', 'account_balances_v1'],
    ])
  })

  it('reports no difference for rows that the service writes while the log is read', async () => {
    const store = log.open()
    const last = log.events.findLast(({ stream }) => stream.startsWith('payment-'))?.position ?? expect.fail()
    const replayed: typeof store = {
      ...store,
      subscribe: async function* (options) {
        for await (const item of store.subscribe(options)) {
          yield item
          if (item.kind !== 'event' || item.event.position !== last) continue
          await database.sql(`update account_balances_v1 set debits = debits + 1 where account = 'cash.USD'`)
          await database.sql(`insert into accounts_v1 values ('acme', 'cash.CHF', 'cash', 'CHF', null, $1)`, [last])
        }
      },
    }
    expect((await verify(log, replayed)).findings).to.deep.equal([])
    expect((await verify()).findings.length).to.be.above(0)
  })

  it('leaves out the events that are parked, and those that were discarded', async () => {
    const parked = log.events.findLast(({ stream }) => stream.startsWith('payment-'))
    const { position, stream, type } = parked ?? expect.fail()
    await tamper(`delete from journal_entries_v1 where position = ${position}`)
    await tamper(`delete from journal_postings_v1 where position = ${position}`)
    await tamper(`delete from account_balances_v1 where position = ${position}`)
    expect((await verify()).findings.length).to.be.above(0)
    await database.sql(
      `insert into parked_facts (delivery, position, key, stream, revision, event_id, type, tenant_id, reason, attempts,
        first_failed_at) values ('journal_entries_v1', $1, $2, $2, 0, 'event', $3, 'acme', 'no', 1, now())`,
      [position, stream, type],
    )
    expect((await verify()).findings).to.deep.equal([])
    await database.sql('delete from parked_facts')
    await database.sql(`insert into discarded_events (delivery, position) values ('journal_entries_v1', $1)`, [
      position,
    ])
    expect((await verify()).findings).to.deep.equal([])
    await database.sql('delete from discarded_events')
  })
})
