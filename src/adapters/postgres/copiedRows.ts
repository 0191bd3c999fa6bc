import { type Connection, type PoolClient, Query } from 'pg'
import type { TableRows } from '../../../projections/projection.ts'
import { BINARY_TYPES, type BinaryType, framed } from './binaryValues.ts'

/** `copy … from stdin` in binary costs Postgres half of an insert: pages are filled and logged as a whole. */

/** Copies as one statement of a transaction: the rows of each table in the order of the text. */
export type Copy = { text: string; copied: readonly Buffer[] }

const SIGNATURE = Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1')
const NO_FLAGS_NO_EXTENSION = Buffer.alloc(8)
const END = Buffer.of(0xff, 0xff)

type Column = { readonly name: string; readonly type: BinaryType; readonly isJson: boolean }

const columnsOf = ({ columns }: TableRows['table']): readonly Column[] | undefined => {
  const binaryColumns = Object.entries(columns).flatMap(([name, typeName]) => {
    const type = BINARY_TYPES[typeName]
    return type === undefined ? [] : [{ name, type, isJson: typeName === 'json' }]
  })
  return binaryColumns.length === Object.keys(columns).length ? binaryColumns : undefined
}

const bytesOf = ({ table, rows }: TableRows): Buffer | undefined => {
  const columns = columnsOf(table)
  if (columns === undefined) return undefined
  const values: unknown[] = []
  for (const row of rows as readonly Readonly<Record<string, unknown>>[])
    for (const { name, isJson } of columns) values.push(isJson ? JSON.stringify(row[name]) : row[name])
  const types = columns.map(({ type }) => type)
  const bytes = framed(types, values, Buffer.of(0, columns.length), columns.length)
  return bytes && Buffer.concat([SIGNATURE, NO_FLAGS_NO_EXTENSION, bytes, END])
}

const textOf = ({ table: { name, columns } }: TableRows): string =>
  `copy ${name} (${Object.keys(columns).join(', ')}) from stdin (format binary)`

/** Undefined if a value has no binary form. */
export const copyOf = (added: readonly TableRows[]): Copy | undefined => {
  const copied: Buffer[] = []
  for (const rows of added) {
    const bytes = bytesOf(rows)
    if (bytes === undefined) return undefined
    copied.push(bytes)
  }
  return { text: added.map(textOf).join('; '), copied }
}

/** The members of a connection of `pg` for copies, which its type does not have. */
type CopyConnection = Connection & {
  readonly sendCopyFromChunk: (chunk: Buffer) => void
  readonly endCopyFrom: () => void
}

/** The rows follow the statement at once: after an error Postgres ignores them. */
class CopyQuery extends Query {
  constructor({ text, copied }: Copy, ended: (error: Error | undefined | null) => void) {
    super({ text }, ended)
    const { submit } = this
    this.submit = (connection: Connection) => {
      const to = connection as CopyConnection
      to.stream.cork()
      submit.call(this, to)
      for (const rows of copied) {
        to.sendCopyFromChunk(rows)
        to.endCopyFrom()
      }
      to.stream.uncork()
    }
  }

  /** Called by `pg` when Postgres is ready for the rows, which were sent already. */
  handleCopyInResponse(): void {
    return undefined
  }
}

/** Executes the copy. Rejects with the errors of `query`. */
export const copyInto = (client: PoolClient, copy: Copy, query_timeout?: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const query = new CopyQuery(copy, error => (error ? reject(error) : resolve()))
    client.query(query_timeout === undefined ? query : Object.assign(query, { query_timeout }))
  })
