import { expect } from 'chai'
import fc from 'fast-check'
import type { TableRows } from '../../projections/projection.ts'
import { openDatabase } from '../../src/adapters/postgres/database.ts'
import { type Database, type Sql, Unavailable } from '../../src/ports.ts'
import { newDatabase } from '../support/postgres.ts'
import { rejectionOf } from '../support/rejection.ts'

const COLUMNS = { id: 'bigint', label: 'text', number: 'integer', at: 'timestamptz', value: 'json' } as const
type Values = { readonly id: bigint; readonly [column: string]: unknown }

const rowsOf = (name: string, rows: readonly Values[]): TableRows => ({ table: { name, columns: COLUMNS }, rows })
const row = (id: number): Values => ({
  id: BigInt(id),
  label: 'a',
  number: 1,
  at: '2026-01-02T03:04:05.678Z',
  value: {},
})

describe('rows that are copied', () => {
  let connectionString: string
  let database: Database
  const opened: Database[] = []

  const open = (statementTimeoutMs: number): Database => {
    const one = openDatabase({ connectionString, statementTimeoutMs, poolMax: 1 })
    opened.push(one)
    return one
  }
  /** Resolves to whether the rows were copied. */
  const copy = (...added: readonly TableRows[]): Promise<boolean> =>
    database.transaction(async (_, copyRows) => {
      const copied = copyRows?.(added)
      await copied
      return copied !== undefined
    })
  const stored = (table: string, sql: Sql = database.sql) => sql(`select * from ${table} order by id`)
  const idsIn = async (table: string): Promise<unknown[]> => (await stored(table)).map(({ id }) => id)

  before(async () => {
    connectionString = await newDatabase()
    database = open(60_000)
  })
  beforeEach(() =>
    database.sql(`
      drop table if exists one, other;
      create table one (id bigint primary key, label text, number int, at timestamptz, value json);
      create table other (like one including all)`),
  )
  after(() => Promise.all(opened.map(one => one.close())))

  it('are equal to rows that are inserted, whatever their values', async () => {
    const text = fc.oneof(fc.string({ unit: 'binary' }), fc.string({ maxLength: 200 }), fc.constant('half \ud83d'))
    const value = fc.record({
      label: fc.option(text.filter(some => !some.includes('\0'))),
      number: fc.option(fc.integer({ min: -(2 ** 31) + 1 })),
      at: fc.option(
        fc
          .date({ min: new Date('1000-01-01T00:00:00Z'), max: new Date('2999-12-31T00:00:00Z'), noInvalidDate: true })
          .map(date => date.toISOString()),
      ),
      value: fc.constantFrom(null, 7, 'é€😀\n\t\\"', { a: [1, { b: null }] }, []),
    })
    const ids = fc.bigInt({ min: -(2n ** 63n) + 1n, max: 2n ** 63n - 1n })
    const rows = fc.uniqueArray(fc.tuple(ids, value), { selector: ([id]) => id, minLength: 1, maxLength: 300 })
    const check = async (some: readonly (readonly [bigint, object])[]): Promise<void> => {
      await database.sql('truncate one, other')
      const values = some.map(([id, others]): Values => ({ id, ...others }))
      expect(await copy(rowsOf('one', values))).to.equal(true)
      await database.sql(
        'insert into other select * from unnest($1::bigint[], $2::text[], $3::int[], $4::timestamptz[], $5::json[])',
        Object.keys(COLUMNS).map(column =>
          values.map(one => (column === 'value' ? JSON.stringify(one[column]) : one[column])),
        ),
      )
      expect(await stored('one')).to.deep.equal(await stored('other'))
    }
    await fc.assert(fc.asyncProperty(rows, check), { numRuns: 30 })
  })

  it('of several tables are added together, in their order among the statements of the transaction', async () => {
    const counts = await database.transaction(async (sql, copyRows) => {
      const count = () =>
        sql<{ count: bigint }>('select (select count(*) from one) + (select count(*) from other) as count')
      const before = count()
      const copied = copyRows?.([rowsOf('one', [row(1), row(2)]), rowsOf('other', [row(3)])])
      const after = count()
      await copied
      return Promise.all([before, after])
    })
    expect(counts).to.deep.equal(
      [[{ count: '0' }], [{ count: '3' }]].map(([one]) => [{ count: BigInt(one?.count ?? 0) }]),
    )
    expect([await idsIn('one'), await idsIn('other')]).to.deep.equal([[1n, 2n], [3n]])
  })

  it('are all absent when one is refused, and the connection goes on', async () => {
    await copy(rowsOf('other', [row(3)]))
    const refusals: Readonly<Record<string, readonly TableRows[]>> = {
      '23505': [rowsOf('one', [row(1)]), rowsOf('other', [row(2), row(3)])],
      '42P01': [rowsOf('missing', [row(1)]), rowsOf('one', [row(1)])],
      '22021': [rowsOf('one', [{ ...row(1), label: 'a\0b' }]), rowsOf('other', [row(4)])],
    }
    for (const [code, added] of Object.entries(refusals)) {
      expect(await rejectionOf(copy(...added)), code).to.have.property('code', code)
      expect([await idsIn('one'), await idsIn('other')], code).to.deep.equal([[], [3n]])
    }
    await copy(rowsOf('one', [row(1)]))
    expect(await idsIn('one')).to.deep.equal([1n])
  })

  it('must be inserted if a value has no exact binary form', async () => {
    const unlike = { id: '7', at: '2026-01-02T03:04:05.678901+02:00', number: 1.5, label: 7 }
    for (const [column, value] of Object.entries(unlike))
      expect(
        await copy(rowsOf('other', [row(2)]), rowsOf('one', [row(1), { ...row(3), [column]: value }])),
        column,
      ).to.equal(false)
    const other = { table: { name: 'one', columns: { ...COLUMNS, day: 'date' as const } }, rows: [row(1)] }
    expect(await copy(other)).to.equal(false)
    expect([await idsIn('one'), await idsIn('other')]).to.deep.equal([[], []])
  })

  it('do not come after an answer that did not come in time', async () => {
    const impatient = open(200)
    let copied: unknown
    const failing = impatient.transaction(async (sql, copyRows) => {
      const late = sql('select pg_sleep(60)')
      const copying = copyRows?.([rowsOf('one', [row(1)])])
      const outcomes = await Promise.allSettled([late, copying])
      copied = outcomes[1]
      return late
    })
    expect(await rejectionOf(failing)).to.be.instanceOf(Unavailable)
    expect(copied).to.have.property('status', 'rejected')
    expect(await idsIn('one')).to.deep.equal([])
  })

  it('wait for a lock no longer than other statements', async () => {
    const impatient = open(300)
    await database.transaction(async sql => {
      await sql('lock table one')
      const waiting = impatient.transaction(async (_, copyRows) => copyRows?.([rowsOf('one', [row(1)])]))
      expect(await rejectionOf(waiting)).to.be.instanceOf(Unavailable)
    })
    expect(await idsIn('one')).to.deep.equal([])
  })
})
