import type pg from 'pg'
import type { StoredRecord } from './record.ts'

const OID = { bool: 16, bytea: 17, int8: 20 } as const
const HEX_PREFIX = '\\x'

// The driver's binary format cannot be used: it decodes every value as UTF-8 before a parser sees it.
const parsers: Readonly<Record<number, (text: string) => unknown>> = {
  [OID.bool]: text => text === 't',
  [OID.bytea]: text => Buffer.from(text.slice(HEX_PREFIX.length), 'hex'),
  [OID.int8]: BigInt,
}
const asText = (text: string): string => text

/** int8 is returned as bigint, bytea as Buffer, everything else as text. */
const types: pg.CustomTypesConfig = { getTypeParser: (oid: number) => parsers[oid] ?? asText }

/** A prepared statement. `name` must be unique to `text`. */
export const queryOf = (name: string, text: string, values: readonly unknown[]): pg.QueryConfig => ({
  name,
  text,
  values: [...values],
  types,
})

export type EventRow = {
  readonly position: bigint
  readonly stream: string
  readonly revision: bigint
  readonly event_id: string
  readonly type: string
  readonly is_json: boolean
  readonly data: Buffer
  readonly metadata: Buffer
  readonly created: bigint
}

export const recordOf = (row: EventRow): StoredRecord => ({
  position: row.position,
  stream: row.stream,
  revision: row.revision,
  id: row.event_id,
  type: row.type,
  isJson: row.is_json,
  data: row.data,
  metadata: row.metadata,
  createdTicks: row.created,
})
