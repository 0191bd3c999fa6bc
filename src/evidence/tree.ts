import type { Sql } from '../ports.ts'
import {
  type Completed,
  consistencyRanges,
  foldSubtrees,
  Frontier,
  inclusionRanges,
  nodeHash,
  type Range,
  type Subtree,
  subtreesOf,
} from './merkle.ts'
import type { Leaf } from './record.ts'

/** The tree in Postgres: its leaves, the perfect subtrees of every fourth level, and the hashes that proofs are made of. */

/** One stored level in four: a sixteenth of the rows, and a hash between is computed from eight stored ones at most. */
const LEVEL_STEP = 4

const isStored = ({ level }: Subtree): boolean => level > 0 && level % LEVEL_STEP === 0

/** Appends the leaves to a copy of the frontier. */
const grown = (frontier: Frontier, leaves: readonly Leaf[]) => {
  const next = frontier.copy()
  const nodes: Completed[] = []
  for (const { hash } of leaves) nodes.push(...next.append(hash).filter(isStored))
  return { next, nodes }
}

const insertLeaves = (sql: Sql, first: number, leaves: readonly Leaf[]): Promise<unknown> =>
  sql(
    `insert into evidence_leaves (leaf, position, event_id, stream, revision, tenant_id, hash)
     select leaf, position, event_id, stream, revision, tenant_id, decode(hash, 'hex')
       from unnest($1::bigint[], $2::bigint[], $3::uuid[], $4::text[], $5::bigint[], $6::text[], $7::text[])
         as given (leaf, position, event_id, stream, revision, tenant_id, hash)`,
    [
      leaves.map((_, n) => BigInt(first + n)),
      leaves.map(({ position }) => position),
      leaves.map(({ eventId }) => eventId),
      leaves.map(({ stream }) => stream),
      leaves.map(({ revision }) => revision),
      leaves.map(({ tenant }) => tenant),
      leaves.map(({ hash }) => hash.toString('hex')),
    ],
  )

const insertNodes = async (sql: Sql, nodes: readonly Completed[]): Promise<void> => {
  if (nodes.length === 0) return
  await sql(
    `insert into evidence_nodes (level, node, hash)
     select level, node, decode(hash, 'hex')
       from unnest($1::int[], $2::bigint[], $3::text[]) as given (level, node, hash)`,
    [
      nodes.map(({ level }) => level),
      nodes.map(({ index }) => BigInt(index)),
      nodes.map(one => one.hash.toString('hex')),
    ],
  )
}

/** Stores the leaves that follow the frontier, in the transaction of `sql`, and resolves to the frontier after them. */
export const storeLeaves = async (sql: Sql, frontier: Frontier, leaves: readonly Leaf[]): Promise<Frontier> => {
  const { next, nodes } = grown(frontier, leaves)
  if (leaves.length > 0) await insertLeaves(sql, frontier.size, leaves)
  await insertNodes(sql, nodes)
  return next
}

/** The stored subtrees below a subtree whose level is not stored; itself where it is. */
const storedPartsOf = ({
  level,
  index,
}: Subtree): { readonly level: number; readonly from: number; readonly to: number } => {
  const stored = level - (level % LEVEL_STEP)
  const count = 2 ** (level - stored)
  return { level: stored, from: index * count, to: (index + 1) * count }
}

type HashRow = { readonly part: number; readonly hash: Buffer }

const HASHES_OF_PARTS = `
  select part, hash from (
    select given.part::int as part, node as at, hash
      from unnest($1::bigint[], $2::int[], $3::bigint[], $4::bigint[]) as given (part, level, low, high)
      join evidence_nodes on evidence_nodes.level = given.level and node >= low and node < high
    union all
    select given.part::int, leaf, hash
      from unnest($1::bigint[], $2::int[], $3::bigint[], $4::bigint[]) as given (part, level, low, high)
      join evidence_leaves on given.level = 0 and leaf >= low and leaf < high
  ) as parts order by part, at`

const perfectRoot = (hashes: readonly Buffer[]): Buffer => {
  let row = hashes
  while (row.length > 1) row = row.flatMap((left, n) => (n % 2 === 0 ? [nodeHash(left, row[n + 1] as Buffer)] : []))
  return row[0] as Buffer
}

/** A part of the tree is not stored, so that no proof can be made. */
export class TreeIncomplete extends Error {
  constructor({ level, index }: Subtree) {
    super(`The tree in Postgres lacks hashes below node ${index} of level ${level}.`)
    this.name = 'TreeIncomplete'
  }
}

/** The hashes of perfect subtrees, by one statement. */
export const subtreeHashes = async (sql: Sql, subtrees: readonly Subtree[]): Promise<Buffer[]> => {
  if (subtrees.length === 0) return []
  const parts = subtrees.map(storedPartsOf)
  const rows = await sql<HashRow>(HASHES_OF_PARTS, [
    parts.map((_, n) => BigInt(n)),
    parts.map(({ level }) => level),
    parts.map(({ from }) => BigInt(from)),
    parts.map(({ to }) => BigInt(to)),
  ])
  const found: Buffer[][] = parts.map(() => [])
  for (const { part, hash } of rows) found[part]?.push(Buffer.from(hash))
  return subtrees.map((subtree, n) => {
    const { from, to } = parts[n] as { from: number; to: number }
    const hashes = found[n] ?? []
    if (hashes.length !== to - from) throw new TreeIncomplete(subtree)
    return perfectRoot(hashes)
  })
}

/** The hashes of ranges, by one statement. */
const rangeHashes = async (sql: Sql, ranges: readonly Range[]): Promise<Buffer[]> => {
  const subtrees = ranges.map(subtreesOf)
  const hashes = await subtreeHashes(sql, subtrees.flat())
  let at = 0
  return subtrees.map(({ length }) => foldSubtrees(hashes.slice(at, (at += length))))
}

export const rootAt = async (sql: Sql, size: number): Promise<Buffer> =>
  foldSubtrees(await subtreeHashes(sql, subtreesOf({ from: 0, to: size })))

export const inclusionProof = (sql: Sql, leaf: number, size: number): Promise<Buffer[]> =>
  rangeHashes(sql, inclusionRanges(leaf, size))

export const consistencyProof = (sql: Sql, earlier: number, size: number): Promise<Buffer[]> =>
  rangeHashes(sql, consistencyRanges(earlier, size))

/** The number of leaves. */
export const treeSize = async (sql: Sql): Promise<number> => {
  const [row] = await sql<{ size: bigint }>('select coalesce(max(leaf) + 1, 0) as size from evidence_leaves')
  return Number(row?.size ?? 0n)
}

export const loadFrontier = async (sql: Sql): Promise<Frontier> => {
  const size = await treeSize(sql)
  return new Frontier(size, await subtreeHashes(sql, subtreesOf({ from: 0, to: size })))
}

/** Removes the leaves from `size` on, and the nodes over them. */
export const cutTree = async (sql: Sql, size: number): Promise<void> => {
  await sql('delete from evidence_leaves where leaf >= $1', [BigInt(size)])
  await sql('delete from evidence_nodes where (node + 1) * (1::bigint << level) > $1', [BigInt(size)])
}
