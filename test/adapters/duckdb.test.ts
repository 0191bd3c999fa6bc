import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'
import { expect } from 'chai'
import { invoiceColumns, orderColumns, paymentColumns } from '../../src/processes/exports/exportColumns.ts'
import type { Columns, ColumnType } from '../../projections/projection.ts'
import { csv } from '../../src/adapters/files/csv.ts'
import { parquet } from '../../src/adapters/files/parquet.ts'
import type { FileFormat } from '../../src/ports.ts'
import { removeFolder } from '../support/folders.ts'

/** The types of DuckDB for the columns of a file. */
const DUCKDB_TYPES: Readonly<Record<ColumnType, string>> = {
  text: 'VARCHAR',
  bigint: 'BIGINT',
  integer: 'INTEGER',
  timestamptz: 'TIMESTAMP WITH TIME ZONE',
  date: 'DATE',
  json: 'VARCHAR',
}

const TEXTS = ['tea', '', '=1+1', "'=1", ' =1', '\n=2', '\v@x', 'a,b', 'a"b', 'a\r\nb', 'Zürich ☃ 💶', "'t Hooft", '-']
const valueAt: Readonly<Record<ColumnType, (n: number) => unknown>> = {
  text: n => TEXTS[n % TEXTS.length],
  bigint: n => 999_999_999_999 - n,
  integer: n => n,
  timestamptz: n => new Date(Date.UTC(1969, 11, 31, 23, 59, 59, 999) + n * 86_400_123).toISOString(),
  date: n => new Date(Date.UTC(1969, 11, 31 + n)).toISOString().slice(0, 10),
  json: n => ({ n, text: TEXTS[n % TEXTS.length], list: [n, null, '"'] }),
}

const rowsOf = (columns: Columns, count: number): object[] =>
  Array.from({ length: count }, (_, n) =>
    Object.fromEntries(
      Object.entries(columns).map(([name, type], index) => [name, (n + index) % 7 === 0 ? null : valueAt[type](n)]),
    ),
  )

const resources = { orders: orderColumns, invoices: invoiceColumns, payments: paymentColumns }

describe('DuckDB', () => {
  let directory: string
  let connection: DuckDBConnection
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'ledger-duckdb-'))
    const instance = await DuckDBInstance.create(':memory:')
    connection = await instance.connect()
    await connection.run(`set timezone = 'Asia/Kolkata'`)
  })
  after(async () => {
    connection.closeSync()
    await removeFolder(directory)
  })

  const written = async (name: string, format: FileFormat, columns: Columns, rows: readonly object[]) => {
    const writer = format(columns)
    const path = join(directory, name)
    await writeFile(path, Buffer.concat([writer.write(rows), writer.end()]))
    return path
  }
  const query = async (sql: string) => (await connection.runAndReadAll(sql)).getRowObjectsJson()

  for (const [resource, columns] of Object.entries(resources)) {
    it(`reads each column of a parquet file of ${resource} with its type, instants with a time zone`, async () => {
      const path = await written(`${resource}.parquet`, parquet, columns, rowsOf(columns, 10))
      const described = await query(`describe select * from '${path}'`)
      const types = Object.fromEntries(described.map(({ column_name, column_type }) => [column_name, column_type]))
      const target = Object.entries(columns).map(([name, type]) => [name, DUCKDB_TYPES[type]])
      expect(types).to.deep.equal(Object.fromEntries(target))
    })

    it(`reads ${resource} from parquet as from csv`, async () => {
      const rows = rowsOf(columns, 6_000)
      const parquetPath = await written(`${resource}-all.parquet`, parquet, columns, rows)
      const csvPath = await written(`${resource}-all.csv`, csv, columns, rows)
      const types = JSON.stringify(columns, (_, type) => DUCKDB_TYPES[type as ColumnType] ?? type).replaceAll('"', "'")
      const plain = Object.entries(columns).map(([name, type]) =>
        type === 'text' ? `regexp_replace("${name}", '^''', '') as "${name}"` : `"${name}"`,
      )
      const options = `header = true, delim = ',', quote = '"', escape = '"', new_line = '\\r\\n', columns = ${types}`
      const fromCsv = `select ${plain.join(', ')} from read_csv('${csvPath}', ${options}, allow_quoted_nulls = false)`
      const fromParquet = `select * from '${parquetPath}'`
      const [counted] = await query(
        `select (select count(*) from (${fromParquet})) as parquet, (select count(*) from (${fromCsv})) as csv,
          (select count(*) from (${fromParquet} except all ${fromCsv})) as parquet_alone,
          (select count(*) from (${fromCsv} except all ${fromParquet})) as csv_alone`,
      )
      expect(counted).to.deep.equal({ parquet: '6000', csv: '6000', parquet_alone: '0', csv_alone: '0' })
    })
  }

  it('has the minimum of each column and row group, by which it can skip row groups', async () => {
    const columns = { at: 'timestamptz', due: 'date' } as const
    const path = await written('times.parquet', parquet, columns, rowsOf(columns, 12_000))
    const [actual] = await query(
      `select count(*) as count from '${path}' where "at" >= '1969-12-31T23:59:59.999Z' and due <= date '1970-01-05'`,
    )
    expect(actual).to.deep.equal({ count: '5' })
    const stats = await query(`select path_in_schema, row_group_id, stats_min_value from parquet_metadata('${path}')`)
    expect(stats).to.have.length(6)
    for (const { stats_min_value } of stats) expect(stats_min_value).to.be.a('string')
  })
})
