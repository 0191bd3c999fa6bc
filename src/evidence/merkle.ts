import { hash } from 'node:crypto'

/**
 * The Merkle tree of RFC 6962 (section 2.1): the hashes of leaves and nodes, the subtrees that a root or a proof is made of,
 * and the verification of proofs. Everything here is pure; the hashes are stored by tree.ts.
 *
 * A tree of n leaves splits at the largest power of two below n, so every left part is a perfect subtree, which never
 * changes again. Sizes and indexes are numbers, which are exact up to 2^53.
 */

const LEAF_PREFIX = Buffer.of(0)
const NODE_PREFIX = Buffer.of(1)

export const HASH_BYTES = 32

const sha256 = (...parts: readonly Uint8Array[]): Buffer => hash('sha256', Buffer.concat(parts), 'buffer')

export const leafHash = (bytes: Uint8Array): Buffer => sha256(LEAF_PREFIX, bytes)

export const nodeHash = (left: Uint8Array, right: Uint8Array): Buffer => sha256(NODE_PREFIX, left, right)

export const EMPTY_ROOT: Buffer = sha256()

/** A perfect subtree: the leaves from `index * 2^level` on, `2^level` of them. */
export type Subtree = { readonly level: number; readonly index: number }
/** Leaves from `from` on, without `to`. */
export type Range = { readonly from: number; readonly to: number }

/** The largest power of two that is not above `count`, as its exponent. */
const levelBelow = (count: number): number => Math.floor(Math.log2(count))

/** The largest power of two below `count`, for a count above one. */
const splitOf = (count: number): number => {
  const level = levelBelow(count)
  return 2 ** level === count ? count / 2 : 2 ** level
}

/** The perfect subtrees of a range, from left to right. The range begins where a subtree of its size may begin. */
export const subtreesOf = ({ from, to }: Range): Subtree[] => {
  const subtrees: Subtree[] = []
  for (let at = from; at < to; ) {
    const level = levelBelow(to - at)
    subtrees.push({ level, index: at / 2 ** level })
    at += 2 ** level
  }
  return subtrees
}

/** The hash of a range from the hashes of its perfect subtrees, from left to right. */
export const foldSubtrees = (hashes: readonly Uint8Array[]): Buffer =>
  hashes.length === 0 ? EMPTY_ROOT : Buffer.from(hashes.reduceRight((right, left) => nodeHash(left, right)))

/** The ranges whose hashes are the inclusion proof of a leaf, in the order of the proof. `leaf` is below `size`. */
export const inclusionRanges = (leaf: number, size: number): Range[] => {
  const path: Range[] = []
  for (let [from, to] = [0, size]; to - from > 1; ) {
    const middle = from + splitOf(to - from)
    path.push(leaf < middle ? { from: middle, to } : { from, to: middle })
    if (leaf < middle) to = middle
    else from = middle
  }
  return path.toReversed()
}

/** The ranges whose hashes are the proof that the tree of `size` leaves begins with that of `earlier` ones. */
export const consistencyRanges = (earlier: number, size: number): Range[] => {
  if (earlier === 0 || earlier >= size) return []
  const path: Range[] = []
  let [from, to] = [0, size]
  while (earlier < to) {
    const middle = from + splitOf(to - from)
    path.push(earlier <= middle ? { from: middle, to } : { from, to: middle })
    if (earlier <= middle) to = middle
    else from = middle
  }
  // The earlier tree itself is known to the verifier, and is left out.
  if (from > 0) path.push({ from, to })
  return path.toReversed()
}

type Head = { readonly size: number; readonly root: Uint8Array }

/** Whether the tree of `later` begins with that of `earlier`. RFC 9162, section 2.1.4.2. */
export const isConsistent = (earlier: Head, later: Head, path: readonly Uint8Array[]): boolean => {
  const ranges = consistencyRanges(earlier.size, later.size)
  if (ranges.length !== path.length) return false
  if (earlier.size === 0) return true
  if (earlier.size === later.size) return Buffer.compare(earlier.root, later.root) === 0
  if (earlier.size > later.size) return false
  const isComplete = (ranges[0]?.from ?? 0) >= earlier.size
  const [first, rest] = isComplete ? [earlier.root, path] : [path[0] as Uint8Array, path.slice(1)]
  const places = isComplete ? ranges : ranges.slice(1)
  let [old, whole] = [first, first]
  for (const [at, other] of rest.entries()) {
    const isLeft = (places[at]?.from ?? 0) < earlier.size
    if (isLeft) old = nodeHash(other, old)
    whole = isLeft ? nodeHash(other, whole) : nodeHash(whole, other)
  }
  return Buffer.compare(old, earlier.root) === 0 && Buffer.compare(whole, later.root) === 0
}

/** A perfect subtree that an appended leaf has completed. */
export type Completed = Subtree & { readonly hash: Buffer }

/** The right edge of a growing tree: the hashes of its perfect subtrees, of which there are as many as its size has ones. */
export class Frontier {
  private readonly hashes: Buffer[]
  private leaves: number

  /** `hashes` are those of `subtreesOf({ from: 0, to: size })`. */
  constructor(size = 0, hashes: readonly Buffer[] = []) {
    this.leaves = size
    this.hashes = [...hashes]
  }

  get size(): number {
    return this.leaves
  }

  copy(): Frontier {
    return new Frontier(this.leaves, this.hashes)
  }

  root(): Buffer {
    return foldSubtrees(this.hashes)
  }

  /** Appends a leaf, and returns the subtrees that it completes, itself first. */
  append(leaf: Buffer): Completed[] {
    const completed: Completed[] = [{ level: 0, index: this.leaves, hash: leaf }]
    let hash = leaf
    for (let level = 1, index = this.leaves; index % 2 === 1; level += 1) {
      index = (index - 1) / 2
      hash = nodeHash(this.hashes.pop() as Buffer, hash)
      completed.push({ level, index, hash })
    }
    this.hashes.push(hash)
    this.leaves += 1
    return completed
  }
}
