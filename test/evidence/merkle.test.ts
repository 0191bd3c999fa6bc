import { createHash } from 'node:crypto'
import { expect } from 'chai'
import fc from 'fast-check'
import {
  consistencyRanges,
  Frontier,
  foldSubtrees,
  inclusionRanges,
  isConsistent,
  leafHash,
  nodeHash,
  type Range,
  subtreesOf,
} from '../../src/evidence/merkle.ts'

/** The root that an inclusion proof leads to; undefined for a proof of another length. RFC 9162, section 2.1.3.2. */
const rootOfInclusion = (
  leaf: { readonly hash: Uint8Array; readonly index: number },
  size: number,
  path: readonly Uint8Array[],
): Buffer | undefined => {
  const ranges = inclusionRanges(leaf.index, size)
  if (leaf.index >= size || ranges.length !== path.length) return undefined
  const isLeft = (at: number): boolean => (ranges[at]?.from ?? 0) < leaf.index
  return Buffer.from(
    path.reduce((hash, other, at) => (isLeft(at) ? nodeHash(other, hash) : nodeHash(hash, other)), leaf.hash),
  )
}

/** The definitions of RFC 6962, section 2.1, written down as they stand there. */
const sha256 = (...parts: readonly Uint8Array[]): Buffer => {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}
const below = (n: number): number => {
  let k = 1
  while (k * 2 < n) k *= 2
  return k
}
const mth = (leaves: readonly Buffer[]): Buffer => {
  if (leaves.length === 0) return sha256()
  if (leaves.length === 1) return sha256(Buffer.of(0), leaves[0] as Buffer)
  const k = below(leaves.length)
  return sha256(Buffer.of(1), mth(leaves.slice(0, k)), mth(leaves.slice(k)))
}
const path = (m: number, leaves: readonly Buffer[]): Buffer[] => {
  if (leaves.length === 1) return []
  const k = below(leaves.length)
  return m < k
    ? [...path(m, leaves.slice(0, k)), mth(leaves.slice(k))]
    : [...path(m - k, leaves.slice(k)), mth(leaves.slice(0, k))]
}
const subproof = (m: number, leaves: readonly Buffer[], isKnown: boolean): Buffer[] => {
  if (m === leaves.length) return isKnown ? [] : [mth(leaves)]
  const k = below(leaves.length)
  return m <= k
    ? [...subproof(m, leaves.slice(0, k), isKnown), mth(leaves.slice(k))]
    : [...subproof(m - k, leaves.slice(k), false), mth(leaves.slice(0, k))]
}

const leavesOf = (count: number): Buffer[] => Array.from({ length: count }, (_, n) => Buffer.from(`event ${n}`))
const rangeHash = (leaves: readonly Buffer[], { from, to }: Range): Buffer => mth(leaves.slice(from, to))
const frontierOf = (leaves: readonly Buffer[]): Frontier => {
  const frontier = new Frontier()
  for (const leaf of leaves) frontier.append(leafHash(leaf))
  return frontier
}

const LEAVES_MAX = 70
const sizes = fc.integer({ min: 1, max: LEAVES_MAX })

describe('the Merkle tree', () => {
  it('has the root of the empty tree and of the test vectors of RFC 6962', () => {
    expect(new Frontier().root().toString('hex')).to.equal(
      'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    )
    expect(leafHash(Buffer.alloc(0)).toString('hex')).to.equal(
      '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
    )
  })

  it('has the root of the definition for every size', () => {
    for (let size = 0; size <= LEAVES_MAX; size += 1) {
      const leaves = leavesOf(size)
      expect(frontierOf(leaves).root(), `${size}`).to.deep.equal(mth(leaves))
    }
  })

  it('names the completed subtrees of each leaf with their hashes', () => {
    const leaves = leavesOf(LEAVES_MAX)
    const frontier = new Frontier()
    for (const leaf of leaves)
      for (const { level, index, hash } of frontier.append(leafHash(leaf)))
        expect(hash).to.deep.equal(rangeHash(leaves, { from: index * 2 ** level, to: (index + 1) * 2 ** level }))
  })

  it('continues from the hashes of its subtrees', () => {
    fc.assert(
      fc.property(sizes, sizes, (size, more) => {
        const leaves = leavesOf(size + more)
        const parts = subtreesOf({ from: 0, to: size })
        const hashes = parts.map(({ level, index }) =>
          rangeHash(leaves, { from: index * 2 ** level, to: (index + 1) * 2 ** level }),
        )
        expect(foldSubtrees(hashes)).to.deep.equal(mth(leaves.slice(0, size)))
        const frontier = new Frontier(size, hashes)
        for (const leaf of leaves.slice(size)) frontier.append(leafHash(leaf))
        expect(frontier.root()).to.deep.equal(mth(leaves))
      }),
    )
  })

  it('has the inclusion proofs of the definition, which lead to the root, and no others do', () => {
    fc.assert(
      fc.property(sizes, fc.nat(LEAVES_MAX), fc.nat(LEAVES_MAX), (size, at, flipped) => {
        const leaves = leavesOf(size)
        const index = at % size
        const proof = inclusionRanges(index, size).map(range => rangeHash(leaves, range))
        expect(proof).to.deep.equal(path(index, leaves))
        const leaf = { index, hash: leafHash(leaves[index] as Buffer) }
        expect(rootOfInclusion(leaf, size, proof)).to.deep.equal(mth(leaves))
        expect(rootOfInclusion({ ...leaf, hash: leafHash(Buffer.from('another')) }, size, proof)).not.to.deep.equal(
          mth(leaves),
        )
        expect(rootOfInclusion(leaf, size, [...proof, mth([])])).to.equal(undefined)
        if (proof.length === 0) return
        const changed = proof.map(hash => Buffer.from(hash))
        const one = changed[flipped % proof.length] as Buffer
        one[0] = (one[0] ?? 0) ^ 1
        expect(rootOfInclusion(leaf, size, changed)).not.to.deep.equal(mth(leaves))
      }),
    )
  })

  it('has the consistency proofs of the definition, which prove themselves, and no others do', () => {
    fc.assert(
      fc.property(sizes, sizes, fc.nat(LEAVES_MAX), (one, other, flipped) => {
        const [earlier, later] = [Math.min(one, other), Math.max(one, other)]
        const leaves = leavesOf(later)
        const proof = consistencyRanges(earlier, later).map(range => rangeHash(leaves, range))
        expect(proof).to.deep.equal(subproof(earlier, leaves, true))
        const [old, whole] = [mth(leaves.slice(0, earlier)), mth(leaves)]
        expect(isConsistent({ size: earlier, root: old }, { size: later, root: whole }, proof)).to.equal(true)
        expect(isConsistent({ size: 0, root: mth([]) }, { size: later, root: whole }, [])).to.equal(true)
        expect(isConsistent({ size: earlier, root: mth([]) }, { size: later, root: whole }, proof)).to.equal(false)
        expect(isConsistent({ size: earlier, root: old }, { size: later, root: mth([]) }, proof)).to.equal(false)
        if (proof.length === 0) return
        const changed = proof.map(hash => Buffer.from(hash))
        const hash = changed[flipped % proof.length] as Buffer
        hash[0] = (hash[0] ?? 0) ^ 1
        expect(isConsistent({ size: earlier, root: old }, { size: later, root: whole }, changed)).to.equal(false)
      }),
    )
  })
})
