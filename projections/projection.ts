import type { Annotations } from '../streams/idempotencyRecord.ts'
import type { AnyEvent } from '../streams/decider.ts'
import type { Recorded } from '../streams/envelope.ts'

/** The form of read models: their tables, and the functions from events to rows. */

/**
 * The Postgres types of read models. `bigint` arrives as a bigint, `timestamptz` as RFC 3339 in UTC. `date`, an RFC
 * 3339 full-date, exists in exports only: in the tables it is text.
 */
export type ColumnType = 'text' | 'bigint' | 'integer' | 'timestamptz' | 'date' | 'json'
export type Columns = Readonly<Record<string, ColumnType>>

/** Rows that are added to a table. Values of json columns are values. */
export type TableRows = {
  readonly table: { readonly name: string; readonly columns: Columns }
  readonly rows: readonly object[]
}

/**
 * Adds rows to tables in their order. A key that a table has already fails the transaction. Undefined, with nothing added, if a
 * value can be given as text alone: then the rows must be inserted.
 */
export type CopyRows = (added: readonly TableRows[]) => Promise<unknown> | undefined

/** The first columns of every resource. `revision` is the stream's: the ETag, and the expected revision. */
export type ResourceRow = {
  readonly id: string
  readonly tenant_id: string
  readonly state: string
  readonly revision: bigint
  readonly created_at: string
  readonly updated_at: string
  readonly created_by: string
}

/** The first members of every view of a resource. */
export const resourceView = (row: ResourceRow & { readonly metadata: Annotations }) => ({
  version: Number(row.revision),
  tenant_id: row.tenant_id,
  created_at: row.created_at,
  updated_at: row.updated_at,
  created_by: row.created_by,
  metadata: row.metadata,
})

export const RESOURCE_COLUMNS = {
  id: 'text',
  tenant_id: 'text',
  state: 'text',
  revision: 'bigint',
  created_at: 'timestamptz',
  updated_at: 'timestamptz',
  created_by: 'text',
} as const satisfies Columns

/** The columns that an event changes. `revision` and `updated_at` change with every event. */
type Change<R extends ResourceRow> = Partial<Omit<R, keyof ResourceRow> & { state: R['state'] }>
type FirstRow<R extends ResourceRow> = Omit<R, keyof ResourceRow> & { state: R['state'] }

/**
 * A read model with one row per stream. The same fold makes the stored row and, straight from the stream, the answer to
 * a GET by id, so the two cannot differ.
 */
export type Projection<E extends AnyEvent, R extends ResourceRow> = {
  /** The table. Its name has a version: a changed table gets a new name, and is filled beside the old one. */
  readonly name: string
  readonly category: string
  readonly columns: Columns
  /** The type of the stream's first event, and the row that it makes. */
  readonly first: E['type']
  readonly begin: (recorded: Recorded<E>) => FirstRow<R>
  /** Total over all events; the first one changes nothing more. */
  readonly on: { readonly [T in E['type']]: (row: R, recorded: Recorded<Extract<E, { type: T }>>) => Change<R> }
}

/** A read model with rows per event that never change: facts, entries, records. */
export type Journal<E extends AnyEvent, R extends object> = {
  readonly name: string
  readonly categories: readonly string[]
  readonly columns: Columns
  /** The key columns; an existing row is left as it is. */
  readonly key: readonly string[]
  readonly rows: (recorded: Recorded<E>) => readonly R[]
}

/** The event does not follow the row's revision: an event between was missed, and the feed must stop. */
export class Gap extends Error {
  readonly id: string
  constructor(name: string, id: string, expected: bigint, got: bigint) {
    super(`${name} expected revision ${expected} of ${id} and got ${got}.`)
    this.name = 'Gap'
    this.id = id
  }
}

/** The row after the event. An event that the row has seen leaves it as it is; a later one than the next throws Gap. */
export const fold = <E extends AnyEvent, R extends ResourceRow>(
  projection: Projection<E, R>,
  row: R | undefined,
  recorded: Recorded<E>,
): R => {
  const expected = row === undefined ? 0n : row.revision + 1n
  if (row !== undefined && recorded.revision < expected) return row
  if (recorded.revision > expected) throw new Gap(projection.name, recorded.id, expected, recorded.revision)
  const { revision, metadata } = recorded
  if (row !== undefined) {
    const change = projection.on[recorded.event.type as E['type']](row, recorded as never)
    return { ...row, ...change, revision, updated_at: metadata.at }
  }
  if (recorded.event.type !== projection.first)
    throw new Error(`${recorded.id} does not begin with ${projection.first}.`)
  return {
    id: recorded.id,
    tenant_id: metadata.tenant,
    revision,
    created_at: metadata.at,
    updated_at: metadata.at,
    created_by: metadata.subject,
    ...projection.begin(recorded),
  } as R
}
