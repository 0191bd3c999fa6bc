import { createHash, createPublicKey, verify } from 'node:crypto'

/** RFC 6962 and the signatures of heads, written for the tests from the documents alone, without the code of src/evidence. */

const sha256 = (...parts: readonly Uint8Array[]): Buffer => {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}

export const hashOfLeaf = (bytes: Uint8Array): Buffer => sha256(Buffer.of(0), bytes)
const hashOfNode = (left: Uint8Array, right: Uint8Array): Buffer => sha256(Buffer.of(1), left, right)

/** The largest power of two below `n`. */
const below = (n: number): number => {
  let k = 1
  while (k * 2 < n) k *= 2
  return k
}

/** The root over hashes of leaves, by the recursive definition. */
export const naiveRoot = (leaves: readonly Buffer[]): Buffer => {
  if (leaves.length === 0) return sha256()
  if (leaves.length === 1) return leaves[0] as Buffer
  const k = below(leaves.length)
  return hashOfNode(naiveRoot(leaves.slice(0, k)), naiveRoot(leaves.slice(k)))
}

/** The root that the path of a leaf leads to, by the algorithm of RFC 9162, section 2.1.3.2, on the bits of the index. */
export const rootByPath = (leaf: Buffer, index: number, size: number, path: readonly Buffer[]): Buffer | undefined => {
  let [fn, sn, r] = [index, size - 1, leaf]
  for (const p of path) {
    if (sn === 0) return undefined
    if (fn % 2 === 1 || fn === sn) {
      r = hashOfNode(p, r)
      while (fn % 2 === 0 && fn !== 0) [fn, sn] = [fn / 2, Math.floor(sn / 2)]
    } else r = hashOfNode(r, p)
    ;[fn, sn] = [Math.floor(fn / 2), Math.floor(sn / 2)]
  }
  return sn === 0 ? r : undefined
}

/** Members sorted by name at every depth, without spaces: RFC 8785 for the documents of these tests. */
export const canonical = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  const names = Object.keys(value).toSorted()
  return `{${names.map(name => `${JSON.stringify(name)}:${canonical(Reflect.get(value, name))}`).join(',')}}`
}

export type HeadLine = {
  readonly tree_size: number
  readonly root: string
  readonly signature: string
  readonly key: string
  readonly generation: number
  readonly previous_size: number
  readonly consistency: readonly string[]
  readonly position: string
  readonly time: string
}

/** Whether the head is signed with this public key: base64 of SubjectPublicKeyInfo. */
export const isSignedBy = (head: HeadLine, spki: string): boolean => {
  const { signature, consistency: _, ...signed } = head
  const key = createPublicKey({ key: Buffer.from(spki, 'base64'), format: 'der', type: 'spki' })
  return verify(null, Buffer.from(canonical(signed)), key, Buffer.from(signature, 'base64'))
}
