import { ByteWriter, ParquetWriter } from 'hyparquet-writer'
import type { Columns, ColumnType } from '../../../projections/projection.ts'
import type { FileFormat } from '../../ports.ts'

type SchemaElement = ConstructorParameters<typeof ParquetWriter>[0]['schema'][number]

/** A group stays in memory until it is full: large enough for compression, small enough not to block the event loop. */
const GROUP_ROWS = 5_000

type Element = Omit<SchemaElement, 'name'>

const STRING: Element = { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } }

/**
 * In both notations, since older readers know the converted types only. Unmarked instants would count as local times;
 * some readers show the type JSON as bytes, so it is text.
 */
const TYPES: Readonly<Record<ColumnType, Element>> = {
  text: STRING,
  json: STRING,
  bigint: { type: 'INT64' },
  integer: { type: 'INT32' },
  timestamptz: {
    type: 'INT64',
    converted_type: 'TIMESTAMP_MILLIS',
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' },
  },
  date: { type: 'INT32', converted_type: 'DATE', logical_type: { type: 'DATE' } },
}

/** Values as the writer expects them: 64-bit integers as bigint, instants and dates as Date. */
const VALUES: Readonly<Record<ColumnType, (value: unknown) => unknown>> = {
  text: value => value,
  json: value => JSON.stringify(value),
  bigint: value => BigInt(value as number),
  integer: value => value,
  timestamptz: value => new Date(value as string),
  date: value => new Date(value as string),
}

const schemaOf = (columns: Columns): SchemaElement[] => [
  { name: 'root', num_children: Object.keys(columns).length },
  ...Object.entries(columns).map(([name, type]) => ({ name, repetition_type: 'OPTIONAL' as const, ...TYPES[type] })),
]

/** Apache Parquet with Snappy, one row group after the other. */
export const parquet: FileFormat = columns => {
  const fields = Object.entries(columns)
  const writer = new ByteWriter()
  const file = new ParquetWriter({ writer, schema: schemaOf(columns), createdBy: 'payment-ledger' })
  let waiting: object[] = []

  const take = (): Uint8Array => {
    const bytes = writer.getBytes().slice()
    // Resets the buffer after its bytes were taken. `offset` continues to count, since the footer has the start of each
    // group.
    writer.index = 0
    return bytes
  }
  const writeGroup = (): void => {
    const columnData = fields.map(([name, type]) => ({
      name,
      data: waiting.map(row => {
        const value = (row as Record<string, unknown>)[name] ?? null
        return value === null ? null : VALUES[type](value)
      }),
    }))
    if (waiting.length > 0) void file.write({ columnData, rowGroupSize: waiting.length })
    waiting = []
  }
  return {
    write: rows => {
      for (let from = 0; from < rows.length; ) {
        const room = GROUP_ROWS - waiting.length
        waiting.push(...rows.slice(from, from + room))
        from += room
        if (waiting.length === GROUP_ROWS) writeGroup()
      }
      return take()
    },
    end: () => {
      writeGroup()
      void file.finish()
      return take()
    },
  }
}
