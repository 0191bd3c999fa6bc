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

/** The name of the feed that fills the tree, and of its checkpoint. */
export const HEAD_SIGNING = 'sealing'

/** One stored level in four: a sixteenth of the rows, and a hash between is computed from eight stored ones at most. */
const LEVEL_STEP = 4

const isStored = ({ level }: Subtree): boolean => level > 0 && level % LEVEL_STEP === 0

const grown = (frontier: Frontier, leaves: readonly Leaf[]) => {
  const next = frontier.copy()
  const nodes: Completed[] = []
  for (const { hash } of leaves) nodes.push(...next.append(hash).filter(isStored))
  return { next, nodes }
}

/**
 * Parts of a `with` statement, with parameters from `first`, whose rows are joined to `moved`: one row, or none if
 * nothing may be written.
 */
export const growthFrom = (first: number): string => `
  leaf as (insert into evidence_leaves (leaf, position, event_id, stream, revision, tenant_id, hash)
    select given.* from moved cross join unnest(
      $${first}::bigint[], $${first + 1}::bigint[], $${first + 2}::uuid[], $${first + 3}::text[], $${first + 4}::bigint[],
      $${first + 5}::text[], $${first + 6}::bytea[]) as given),
  node as (insert into evidence_nodes (level, node, hash)
    select given.* from moved cross join unnest(
      $${first + 7}::int[], $${first + 8}::bigint[], $${first + 9}::bytea[]) as given)`

/** The frontier after the leaves, and the values of the parameters of `growthFrom`. */
export const growthOf = (
  frontier: Frontier,
  leaves: readonly Leaf[],
): { readonly next: Frontier; readonly values: readonly unknown[][] } => {
  const { next, nodes } = grown(frontier, leaves)
  const values = [
    leaves.map((_, n) => BigInt(frontier.size + n)),
    leaves.map(({ position }) => position),
    leaves.map(({ eventId }) => eventId),
    leaves.map(({ stream }) => stream),
    leaves.map(({ revision }) => revision),
    leaves.map(({ tenant }) => tenant),
    leaves.map(({ hash }) => hash),
    nodes.map(({ level }) => level),
    nodes.map(({ index }) => BigInt(index)),
    nodes.map(({ hash }) => hash),
  ]
  return { next, values }
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

/** A part of the tree is not stored, so no proof can be made. */
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
  const hashesOf: Buffer[][] = parts.map(() => [])
  for (const { part, hash } of rows) hashesOf[part]?.push(Buffer.from(hash))
  return subtrees.map((subtree, n) => {
    const { from, to } = parts[n] as { from: number; to: number }
    const hashes = hashesOf[n] ?? []
    if (hashes.length !== to - from) throw new TreeIncomplete(subtree)
    return perfectRoot(hashes)
  })
}

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

export const treeSize = async (sql: Sql): Promise<number> => {
  const [row] = await sql<{ size: bigint }>('select coalesce(max(leaf) + 1, 0) as size from evidence_leaves')
  return Number(row?.size ?? 0n)
}

export const loadFrontier = async (sql: Sql): Promise<Frontier> => {
  const size = await treeSize(sql)
  return new Frontier(size, await subtreeHashes(sql, subtreesOf({ from: 0, to: size })))
}

/** A tree of 2 ** 52 leaves would have one more level. */
const LEVEL_MAX = 48

/** Removes the leaves from `size` on, and the nodes over them: level by level, for which there is an index. */
export const cutTree = async (sql: Sql, size: number): Promise<void> => {
  await sql('delete from evidence_leaves where leaf >= $1', [BigInt(size)])
  for (let level = LEVEL_STEP; level <= LEVEL_MAX; level += LEVEL_STEP)
    await sql('delete from evidence_nodes where level = $1 and node >= $2', [level, BigInt(size) >> BigInt(level)])
}
