import type { Sql } from '../ports.ts'
import type { Leaf } from './record.ts'

export type IndexedLeaf = Leaf & { readonly index: number }

type LeafRow = {
  readonly leaf: bigint
  readonly position: bigint
  readonly event_id: string
  readonly stream: string
  readonly revision: bigint
  readonly tenant_id: string | null
  readonly hash: Buffer
}

const COLUMNS = 'leaf, position, event_id, stream, revision, tenant_id, hash'

const indexedLeafOf = ({ leaf, event_id, tenant_id, hash, position, stream, revision }: LeafRow): IndexedLeaf => ({
  index: Number(leaf),
  position,
  eventId: event_id,
  stream,
  revision,
  tenant: tenant_id,
  hash: Buffer.from(hash),
})

export const newestLeaves = async (sql: Sql, limit: number): Promise<IndexedLeaf[]> =>
  (await sql<LeafRow>(`select ${COLUMNS} from evidence_leaves order by leaf desc limit $1`, [limit])).map(indexedLeafOf)

/** The position of the event of a leaf; zero where there is no such leaf, as before the first. */
export const positionOfLeaf = async (sql: Sql, leaf: number): Promise<bigint> => {
  const [row] = await sql<{ position: bigint }>('select position from evidence_leaves where leaf = $1', [BigInt(leaf)])
  return row?.position ?? 0n
}

/** Whether an event was signed for the tenant. Reads all leaves where none was. */
export const hasLeafOf = async (sql: Sql, tenant: string): Promise<boolean> =>
  (await sql('select from evidence_leaves where tenant_id = $1 limit 1', [tenant])).length > 0

const PAGE = 2_000

/** The leaves before `size` in their order, in pages. */
export async function* leavesBelow(sql: Sql, size: number): AsyncGenerator<IndexedLeaf> {
  for (let from = 0; from < size; from += PAGE) {
    const to = Math.min(from + PAGE, size)
    const rows = await sql<LeafRow>(
      `select ${COLUMNS} from evidence_leaves where leaf >= $1 and leaf < $2 order by leaf`,
      [BigInt(from), BigInt(to)],
    )
    for (const row of rows) yield indexedLeafOf(row)
  }
}

/** The leaf of an event; the oldest, if the store has two events with one id. */
export const leafOfEvent = async (sql: Sql, eventId: string): Promise<IndexedLeaf | undefined> => {
  const rows = await sql<LeafRow>(
    `select ${COLUMNS} from evidence_leaves where event_id = $1::uuid order by leaf limit 1`,
    [eventId],
  )
  return rows.map(indexedLeafOf)[0]
}
