import { parquetMetadata } from 'hyparquet'
import { expect } from 'chai'
import { stringify } from 'csv-stringify/sync'
import fc from 'fast-check'
import { csv } from '../../src/adapters/files/csv.ts'
import { jsonl } from '../../src/adapters/files/jsonl.ts'
import { parquet } from '../../src/adapters/files/parquet.ts'
import type { FileFormat } from '../../src/ports.ts'
import type { ExportFormat } from '../../streams/operation/index.ts'
import { parseCsv, type Read, rowsOfFile } from '../support/exportFileReaders.ts'

const formats: Readonly<Record<ExportFormat, FileFormat>> = { csv, jsonl, parquet }
const columns = {
  id: 'text',
  amount: 'bigint',
  version: 'integer',
  at: 'timestamptz',
  due: 'date',
  note: 'text',
  more: 'json',
} as const

const rowAt = (n: number): Read => ({
  id: `pay_${n}`,
  amount: 999_999_999_999 - n,
  version: n,
  at: new Date(Date.UTC(2026, 0, 1) + n).toISOString(),
  due: new Date(Date.UTC(2026, 0, 1 + n)).toISOString().slice(0, 10),
  note: n % 3 === 0 ? null : `Zürich ☃ 💶 ${n}`,
  more: n % 2 === 0 ? { shop: `n ${n}`, '"': ',' } : null,
})

const file = (format: FileFormat, batches: readonly (readonly object[])[]): Buffer => {
  const writer = format(columns)
  return Buffer.concat([...batches.map(rows => writer.write(rows)), writer.end()])
}

/** The row as a reader of the format gets it. */
const asRead: Readonly<Record<ExportFormat, (row: Read) => Read>> = {
  jsonl: row => row,
  csv: row => ({
    ...row,
    amount: String(row['amount']),
    version: String(row['version']),
    more: row['more'] === null ? null : JSON.stringify(row['more']),
  }),
  parquet: row => ({
    ...row,
    amount: BigInt(row['amount'] as number),
    at: new Date(row['at'] as string),
    due: new Date(row['due'] as string),
    more: row['more'] === null ? null : JSON.stringify(row['more']),
  }),
}

for (const format of ['csv', 'jsonl', 'parquet'] as const)
  describe(`a ${format} file`, () => {
    const write = formats[format]

    it('without rows is valid and empty', async () => {
      expect(await rowsOfFile(format, file(write, []))).to.deep.equal([])
      expect(await rowsOfFile(format, file(write, [[], []]))).to.deep.equal([])
    })

    it('contains the rows in order, with exact values', async () => {
      const rows = Array.from({ length: 12_345 }, (_, n) => rowAt(n))
      const batches = [rows.slice(0, 1), rows.slice(1, 4_999), [], rows.slice(4_999, 11_000), rows.slice(11_000)]
      const read = await rowsOfFile(format, file(write, batches))
      expect(read).to.have.length(rows.length)
      for (const n of [0, 1, 2, 3, 4_998, 4_999, 5_000, 9_999, 10_000, 12_344])
        expect(read[n], `row ${n}`).to.deep.equal(asRead[format](rows[n] ?? {}))
      expect(new Set(read.map(({ id }) => id)).size).to.equal(rows.length)
    })

    it('is written in pieces as its rows come, and not at its end', () => {
      const writer = write(columns)
      const rows = Array.from({ length: 500 }, (_, n) => rowAt(n))
      const sizes = Array.from({ length: 40 }, () => writer.write(rows).length)
      const half = sizes.slice(0, 20).reduce((sum, size) => sum + size, 0)
      const other = sizes.slice(20).reduce((sum, size) => sum + size, 0)
      expect(half).to.be.greaterThan(10_000)
      expect(Math.abs(half - other) / half, 'bytes of both halves of the rows').to.be.lessThan(0.05)
    })
  })

describe('a csv file', () => {
  const cellOf = (note: string): string | null => {
    const [, record] = parseCsv(file(csv, [[{ ...rowAt(1), note }]]).toString())
    return record?.[5] ?? null
  }

  it('begins with the names of its columns, also without rows', () => {
    const header = 'id,amount,version,at,due,note,more\r\n'
    expect(file(csv, []).toString()).to.equal(header)
    expect(file(csv, [[rowAt(3)]]).toString()).to.equal(
      `${header}pay_3,999999999996,3,2026-01-01T00:00:00.003Z,2026-01-04,,\r\n`,
    )
  })

  it('distinguishes an empty text from an absent one', () => {
    expect(file(csv, [[{ ...rowAt(1), note: '', more: null }]]).toString()).to.match(/Z,2026-01-02,"",\r\n$/)
    expect(file(csv, [[{ ...rowAt(1), note: null, more: null }]]).toString()).to.match(/Z,2026-01-02,,\r\n$/)
  })

  it('leaves numbers unchanged, also negative ones', () => {
    expect(file(csv, [[{ ...rowAt(3), amount: -5 }]]).toString()).to.include('pay_3,-5,3,')
  })

  const formulas = [
    ...['=1+1', '=cmd|/C calc!A0', "=cmd|' /C notepad'!'A1'", '=HYPERLINK("http://x","y")', '=IMPORTXML("http://x")'],
    ...['+1', '+1+1', '+cmd|/C calc!A0', '-1', '-1+1', '-2+3+cmd|/C calc!A0', '@SUM(1,1)', '@A1', '@'],
    ...['\t=1+1', '\t', '\r=1+1', '\r', '=', '+', '-', '--', '=-1', '=1,2', '=1"2', '=1\n2', '=1\r\n2', '="a"'],
    ...['＝1+1', '＋1', '－1', '＠A1', '=ü', '=☃', '=💶', '-💶', '+"x"', '@"x",', '=1;=2', '=A1&" "', '-,'],
    ...['=DDE("cmd";"/C calc";"x")', '@cmd', '+44 20 7946 0000', '-0', '=TRUE', '\t@SUM(1)', '\r\n=1'],
    // Spreadsheets skip white space and control characters before a formula.
    ...[' =1', '\n=1', '\v=1', '\f=1', '\u00a0=1', '\ufeff=1', '\u200b=1', '\u2003+1', '\u2028-1', '\u0085@A1'],
    ...['\u0001=1', '\u001f=1', '\u007f=1', '  \n\v =1', ' \t', '\n\r', ' -1', '\n@A1', '\u3000＝1', '﹦1', '−1'],
  ]
  const quoted = ["'", "'=1", "''=1", "' =1", "'text", "'t Hooft", "'\n=1", "'\u2003'"]
  const harmless = ['1=1', '"=1"', 'a-b', 'x+y', 'me@shop', '', '1', 'tab\there', 'é=', '0-1', ' ', '\n', '\v', ' a=1']

  it(`has an apostrophe before each of ${formulas.length} texts that a spreadsheet would calculate`, () => {
    expect(formulas.length).to.be.at.least(60)
    expect(new Set(formulas).size).to.equal(formulas.length)
    for (const formula of [...formulas, ...quoted]) {
      const cell = cellOf(formula)
      expect(cell, JSON.stringify(formula)).to.equal(`'${formula}`)
    }
  })

  it('has every other text unchanged', () => {
    for (const text of [...harmless, 'a,b', 'a"b', 'a\nb', 'a\r\nb', 'a\rb', '"', ',', ' lead', 'trail '])
      expect(cellOf(text) ?? '', JSON.stringify(text)).to.equal(text)
  })

  it('has the bytes that the package csv-stringify writes', () => {
    const text = fc.oneof(
      fc.stringMatching(/^[a",\r\n é☃]{0,6}$/).filter(some => !/^[\r\n ]/.test(some)),
      fc.string({ unit: 'grapheme' }).filter(some => /^[a-z]/i.test(some)),
    )
    const row = fc.record({
      id: text,
      amount: fc.oneof(fc.maxSafeInteger(), fc.bigInt()),
      version: fc.integer(),
      at: fc.constant('2026-01-01T00:00:00.003Z'),
      due: fc.option(fc.constant('2026-01-01')),
      note: fc.option(text, { nil: undefined }),
      more: fc.option(fc.dictionary(text, fc.jsonValue())),
    })
    const names = Object.keys(columns)
    fc.assert(
      fc.property(fc.array(row, { maxLength: 20 }), rows => {
        const cells = rows.map(({ more, ...others }) =>
          names.map(name => ({ ...others, more: more && JSON.stringify(more) })[name as 'id']),
        )
        const quoting = { quote_record_delimiter: true, quoted_match: /^$/ }
        const expected = stringify(cells, { columns: names, header: true, record_delimiter: '\r\n', ...quoting })
        expect(file(csv, [rows.slice(0, 3), rows.slice(3)]).toString()).to.equal(expected)
      }),
    )
  })

  it('has every text as it was for a reader who removes one leading apostrophe', () => {
    const some = fc.stringMatching(/^['=+\-@\t\r\n\v \u00a0＝a"1,]{0,6}$/)
    const anything = fc.string({ unit: 'binary' }).map(text => text.toWellFormed())
    fc.assert(
      fc.property(fc.oneof(some, anything), text => {
        const cell = cellOf(text) ?? ''
        expect(cell.replace(/^'/, '')).to.equal(text)
        expect(cell).not.to.match(/^[\s\p{Cc}\p{Cf}]*[=+\-@\t\r]/u)
      }),
    )
  })
})

describe('a parquet file', () => {
  it('has typed columns, and row groups of 5,000', () => {
    const bytes = file(parquet, [Array.from({ length: 12_000 }, (_, n) => rowAt(n))])
    const { schema, row_groups, num_rows } = parquetMetadata(new Uint8Array(bytes).buffer)
    const types = schema.slice(1).map(({ name, type, converted_type, logical_type }) => ({
      name,
      type,
      converted_type,
      logical_type,
    }))
    const text = { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } }
    const utc = { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' }
    expect(types).to.deep.equal([
      { name: 'id', ...text },
      { name: 'amount', type: 'INT64', converted_type: undefined, logical_type: undefined },
      { name: 'version', type: 'INT32', converted_type: undefined, logical_type: undefined },
      { name: 'at', type: 'INT64', converted_type: 'TIMESTAMP_MILLIS', logical_type: utc },
      { name: 'due', type: 'INT32', converted_type: 'DATE', logical_type: { type: 'DATE' } },
      { name: 'note', ...text },
      { name: 'more', ...text },
    ])
    expect(num_rows).to.equal(12_000n)
    expect(row_groups.map(group => group.num_rows)).to.deep.equal([5_000n, 5_000n, 2_000n])
  })
})
