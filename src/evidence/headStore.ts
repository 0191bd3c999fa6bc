import type { Sql } from '../ports.ts'
import { type Head, headSchema, type SigningKey } from './heads.ts'

/** The signed heads in Postgres, with the public keys that verify them and the accepted restores. */

/** `rest`: the statement after its table, `h`. */
const selected = async (sql: Sql, rest: string, values: readonly unknown[] = []): Promise<Head[]> => {
  const rows = await sql<{ head: unknown }>(`select head from evidence_heads h ${rest}`, values)
  return rows.map(({ head }) => headSchema.parse(head))
}

/** The newest head; undefined before the first. */
export const lastHead = async (sql: Sql): Promise<Head | undefined> =>
  (await selected(sql, 'order by generation desc, tree_size desc limit 1'))[0]

type Place = Pick<Head, 'generation' | 'tree_size'>
const BEFORE_ALL: Place = { generation: 0, tree_size: 0 }

/** The heads after a place, oldest first. */
export const headsAfter = (sql: Sql, after: Place = BEFORE_ALL, limit = 1_000): Promise<Head[]> =>
  selected(sql, 'where (generation, tree_size) > ($1::int, $2::bigint) order by generation, tree_size limit $3', [
    after.generation,
    BigInt(after.tree_size),
    limit,
  ])

/** The heads before a place, newest first; from the newest one without a place. */
export const headsBefore = (sql: Sql, before: Place | undefined, limit: number): Promise<Head[]> => {
  const { generation, tree_size } = before ?? { generation: 2 ** 31 - 1, tree_size: 0 }
  return selected(
    sql,
    'where (generation, tree_size) < ($1::int, $2::bigint) order by generation desc, tree_size desc limit $3',
    [generation, BigInt(tree_size), limit],
  )
}

/** All heads, oldest first, in pages. */
export async function* allHeads(sql: Sql): AsyncGenerator<Head> {
  for (let after: Place | undefined; ; ) {
    const heads = await headsAfter(sql, after)
    yield* heads
    after = heads.at(-1)
    if (after === undefined) return
  }
}

/** Of the tree that a later restart has kept: heads beyond that are of a tree that is no more. */
const OF_PRESENT_TREE =
  'not exists (select from evidence_restarts r where r.generation > h.generation and r.kept_size < h.tree_size)'

/** The newest head of this size in the present tree. */
export const headOfSize = async (sql: Sql, size: number): Promise<Head | undefined> => {
  const rest = `where tree_size = $1 and ${OF_PRESENT_TREE} order by generation desc limit 1`
  return (await selected(sql, rest, [BigInt(size)]))[0]
}

/** The time of the first head that has the leaf, and was not abandoned with it, in milliseconds since the epoch. */
export const signedBefore = async (sql: Sql, leaf: number): Promise<number | undefined> => {
  const rest = `where tree_size > $1
    and not exists (select from evidence_restarts r where r.generation > h.generation and r.kept_size <= $1)
    order by generation, tree_size limit 1`
  const [head] = await selected(sql, rest, [BigInt(leaf)])
  return head && Date.parse(head.time)
}

/** The newest head of the present tree; undefined before the first, and before the first after a restart. */
export const provableHead = async (sql: Sql): Promise<Head | undefined> =>
  (await selected(sql, `where ${OF_PRESENT_TREE} order by generation desc, tree_size desc limit 1`))[0]

/** Stores a head once. */
export const storeHead = async (sql: Sql, head: Head): Promise<void> => {
  await sql(
    `insert into evidence_heads (generation, tree_size, head) values ($1, $2, $3::jsonb)
     on conflict (generation, tree_size) do nothing`,
    [head.generation, BigInt(head.tree_size), JSON.stringify(head)],
  )
}

export const storeKey = async (sql: Sql, { id, publicKey }: SigningKey): Promise<void> => {
  await sql('insert into evidence_keys (id, public_key) values ($1, $2) on conflict (id) do nothing', [id, publicKey])
}

/** The public keys of all heads, base64 of SubjectPublicKeyInfo, by their ids. */
export const publicKeys = async (sql: Sql): Promise<ReadonlyMap<string, string>> => {
  const rows = await sql<{ id: string; public_key: string }>('select id, public_key from evidence_keys order by id')
  return new Map(rows.map(({ id, public_key }) => [id, public_key]))
}

/** An accepted restore, which begins a generation of heads. */
export type Restart = {
  readonly generation: number
  readonly kept_size: number
  readonly abandoned_size: number
  readonly abandoned_root: string
  /** The id of the event that records the acceptance. */
  readonly audit_record: string
  readonly accepted_by: string
}
type RestartRow = Omit<Restart, 'kept_size' | 'abandoned_size'> & {
  readonly kept_size: bigint
  readonly abandoned_size: bigint
}

/** The rows of restarts, oldest first. A row alone proves no acceptance: the first head of its generation does. */
export const restartRows = async (sql: Sql): Promise<Restart[]> => {
  const rows = await sql<RestartRow>(
    `select generation, kept_size, abandoned_size, abandoned_root, audit_record, accepted_by
       from evidence_restarts order by generation`,
  )
  return rows.map(row => ({ ...row, kept_size: Number(row.kept_size), abandoned_size: Number(row.abandoned_size) }))
}

/** The newest of them; undefined where there is none. */
export const lastRestart = async (sql: Sql): Promise<Restart | undefined> => (await restartRows(sql)).at(-1)

/** Stores the restart instead of rows that nothing signed, of its generation and later ones. */
export const storeRestart = async (sql: Sql, restart: Restart): Promise<void> => {
  await sql('delete from evidence_restarts where generation >= $1', [restart.generation])
  await sql(
    `insert into evidence_restarts
       (generation, kept_size, abandoned_size, abandoned_root, audit_record, accepted_by, accepted_at)
     values ($1, $2, $3, $4, $5, $6, now())`,
    [
      restart.generation,
      BigInt(restart.kept_size),
      BigInt(restart.abandoned_size),
      restart.abandoned_root,
      restart.audit_record,
      restart.accepted_by,
    ],
  )
}
