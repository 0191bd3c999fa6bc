/**
 * Immutable maps and sets: `with` and `without` return a new one that shares all but a few nodes with the old one. A
 * state that is still referenced stays as it is, and folding one more event costs the same for a stream of ten events
 * as for one of a hundred thousand. The structure is a hash array mapped trie (Bagwell, 2001): each level distinguishes
 * 32 children by five bits of the key's hash; keys with equal hashes are chained.
 */

const BITS_PER_LEVEL = 5
const LEVEL_MASK = 31

type Leaf<K, V> = {
  readonly hash: number
  readonly key: K
  readonly value: V
  /** The next key with the same hash. */
  readonly next: Leaf<K, V> | undefined
}
/** Bit n of `present` is set when child n exists; `children` holds only those, in the order of the bits. */
type Branch<K, V> = { readonly present: number; readonly children: readonly Node<K, V>[] }
type Node<K, V> = Leaf<K, V> | Branch<K, V>

const isBranch = <K, V>(node: Node<K, V>): node is Branch<K, V> => 'children' in node

const FNV_OFFSET = 0x811c9dc5
const FNV_PRIME = 0x01000193

/** FNV-1a over UTF-16 code units, 32 bits. */
const hashOf = (key: string): number => {
  let hash = FNV_OFFSET
  for (let at = 0; at < key.length; at += 1) hash = Math.imul(hash ^ key.charCodeAt(at), FNV_PRIME)
  return hash
}

const bitOf = (hash: number, shift: number): number => 1 << ((hash >>> shift) & LEVEL_MASK)

const countBits = (bits: number): number => {
  let count = 0
  for (let rest = bits; rest !== 0; rest &= rest - 1) count += 1
  return count
}

const indexOf = (present: number, bit: number): number => countBits(present & (bit - 1))

const find = <K extends string, V>(
  root: Node<K, V> | undefined,
  key: K,
  hash = hashOf(key),
): Leaf<K, V> | undefined => {
  let node = root
  for (let shift = 0; node !== undefined && isBranch(node); shift += BITS_PER_LEVEL) {
    const bit = bitOf(hash, shift)
    node = node.present & bit ? node.children[indexOf(node.present, bit)] : undefined
  }
  let leaf = node
  while (leaf !== undefined && leaf.key !== key) leaf = leaf.next
  return leaf
}

const chainWithout = <K, V>(leaf: Leaf<K, V> | undefined, key: K): Leaf<K, V> | undefined => {
  if (leaf === undefined) return undefined
  return leaf.key === key ? leaf.next : { ...leaf, next: chainWithout(leaf.next, key) }
}

const put = <K, V>(node: Node<K, V> | undefined, leaf: Leaf<K, V>, shift: number): Node<K, V> => {
  if (node === undefined) return leaf
  if (!isBranch(node)) {
    if (node.hash === leaf.hash) return { ...leaf, next: chainWithout(node, leaf.key) }
    return put({ present: bitOf(node.hash, shift), children: [node] }, leaf, shift)
  }
  const bit = bitOf(leaf.hash, shift)
  const index = indexOf(node.present, bit)
  const isThere = (node.present & bit) !== 0
  const child = put(isThere ? node.children[index] : undefined, leaf, shift + BITS_PER_LEVEL)
  const children = isThere ? node.children.with(index, child) : node.children.toSpliced(index, 0, child)
  return { present: node.present | bit, children }
}

/** The key must be present. */
const remove = <K, V>(node: Node<K, V>, key: K, hash: number, shift: number): Node<K, V> | undefined => {
  if (!isBranch(node)) return chainWithout(node, key)
  const bit = bitOf(hash, shift)
  const index = indexOf(node.present, bit)
  const before = node.children[index]
  const child = before && remove(before, key, hash, shift + BITS_PER_LEVEL)
  if (child !== undefined) return { present: node.present, children: node.children.with(index, child) }
  if (node.children.length === 1) return undefined
  return { present: node.present & ~bit, children: node.children.toSpliced(index, 1) }
}

function* leavesOf<K, V>(node: Node<K, V> | undefined): Generator<Leaf<K, V>> {
  if (node === undefined) return
  if (isBranch(node)) for (const child of node.children) yield* leavesOf(child)
  else for (let leaf: Leaf<K, V> | undefined = node; leaf !== undefined; leaf = leaf.next) yield leaf
}

/** Iterates in the order of the hashes, which is the same in every process and not the order of insertion. */
export class PersistentMap<K extends string, V> {
  readonly size: number
  private readonly root: Node<K, V> | undefined

  private constructor(root: Node<K, V> | undefined, size: number) {
    this.root = root
    this.size = size
  }

  static of<K extends string, V>(entries: Iterable<readonly [K, V]> = []): PersistentMap<K, V> {
    let map = new PersistentMap<K, V>(undefined, 0)
    for (const [key, value] of entries) map = map.with(key, value)
    return map
  }

  get(key: K): V | undefined {
    return find(this.root, key)?.value
  }

  has(key: K): boolean {
    return find(this.root, key) !== undefined
  }

  with(key: K, value: V): PersistentMap<K, V> {
    const hash = hashOf(key)
    const isThere = find(this.root, key, hash) !== undefined
    const root = put(this.root, { hash, key, value, next: undefined }, 0)
    return new PersistentMap(root, isThere ? this.size : this.size + 1)
  }

  without(key: K): PersistentMap<K, V> {
    if (this.root === undefined || !this.has(key)) return this
    return new PersistentMap(remove(this.root, key, hashOf(key), 0), this.size - 1)
  }

  *entries(): Generator<readonly [K, V]> {
    for (const { key, value } of leavesOf(this.root)) yield [key, value]
  }

  *values(): Generator<V> {
    for (const { value } of leavesOf(this.root)) yield value
  }

  [Symbol.iterator](): Generator<readonly [K, V]> {
    return this.entries()
  }
}

/** A set over the keys of such a map. It is an array in JSON. */
export class PersistentSet<K extends string> {
  private readonly members: PersistentMap<K, true>

  private constructor(members: PersistentMap<K, true>) {
    this.members = members
  }

  static of<K extends string>(keys: Iterable<K> = []): PersistentSet<K> {
    let set = new PersistentSet<K>(PersistentMap.of())
    for (const key of keys) set = set.with(key)
    return set
  }

  get size(): number {
    return this.members.size
  }

  has(key: K): boolean {
    return this.members.has(key)
  }

  with(key: K): PersistentSet<K> {
    return this.has(key) ? this : new PersistentSet(this.members.with(key, true))
  }

  without(key: K): PersistentSet<K> {
    return this.has(key) ? new PersistentSet(this.members.without(key)) : this
  }

  *[Symbol.iterator](): Generator<K> {
    for (const [key] of this.members) yield key
  }

  toJSON(): K[] {
    return [...this]
  }
}
