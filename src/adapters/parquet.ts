import { type BasicType, ByteWriter, ParquetWriter, schemaFromColumnData } from 'hyparquet-writer'
import type { ColumnType } from '../../projections/projection.ts'
import type { FileFormat } from '../ports.ts'

/**
 * Rows of one group, which lies in memory until it is full: enough that columns compress and statistics tell something,
 * and few enough that writing one does not keep the other work of this process waiting.
 */
const GROUP_ROWS = 5_000

const TYPES: Readonly<Record<ColumnType, BasicType>> = {
  text: 'STRING',
  bigint: 'INT64',
  integer: 'INT32',
  timestamptz: 'TIMESTAMP',
  json: 'JSON',
}

/** The value as the writer takes it: integers of 64 bits as bigint, instants as dates. */
const valueOf = (value: unknown, type: ColumnType): unknown => {
  if (value === null || value === undefined) return null
  if (type === 'bigint') return BigInt(value as number)
  return type === 'timestamptz' ? new Date(value as string) : value
}

/** Apache Parquet, Snappy, row group by row group. */
export const parquet: FileFormat = columns => {
  const fields = Object.entries(columns)
  const writer = new ByteWriter()
  const dataOf = (rows: readonly object[]) =>
    fields.map(([name, type]) => ({
      name,
      type: TYPES[type],
      data: rows.map(row => valueOf((row as Record<string, unknown>)[name], type)),
    }))
  const schema = schemaFromColumnData({ columnData: dataOf([]) })
  const file = new ParquetWriter({ writer, schema, createdBy: 'payment-ledger' })
  let waiting: object[] = []

  const take = (): Uint8Array => {
    const bytes = writer.getBytes().slice()
    // What was taken is no longer kept; `offset` goes on counting, since the footer says where each group begins.
    writer.index = 0
    return bytes
  }
  const writeGroup = (): void => {
    // The type goes into the schema alone, once.
    const columnData = dataOf(waiting).map(({ name, data }) => ({ name, data }))
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
