import type { AuditHead, AuditProof } from '../../scripts/client/src/generated.ts'

/**
 * Verification of an inclusion proof in the browser, with nothing of the service but the proof: the leaf, the path to the
 * root (RFC 9162, section 2.1.3.2), and the signature of the head (Ed25519 over canonical JSON, RFC 8785).
 */

type Bytes = Uint8Array<ArrayBuffer>

const bytesOfHex = (text: string): Bytes => Uint8Array.from(text.match(/../g) ?? [], pair => Number.parseInt(pair, 16))
const hexOf = (bytes: Bytes): string => [...bytes].map(byte => byte.toString(16).padStart(2, '0')).join('')
const bytesOfBase64 = (text: string): Bytes => Uint8Array.from(atob(text), character => character.charCodeAt(0))

const sha256 = async (...parts: readonly Bytes[]): Promise<Bytes> =>
  new Uint8Array(await crypto.subtle.digest('SHA-256', await new Blob([...parts]).arrayBuffer()))

const LEAF = Uint8Array.of(0)
const NODE = Uint8Array.of(1)

/** The root that the path leads to; undefined for a path of another length than the tree asks for. */
const rootOf = async (proof: AuditProof): Promise<string | undefined> => {
  let [at, last] = [proof.leaf_index, proof.head.tree_size - 1]
  if (at > last) return undefined
  let hash = bytesOfHex(proof.leaf_hash)
  for (const step of proof.inclusion_path) {
    if (last === 0) return undefined
    const other = bytesOfHex(step)
    const isRight = at % 2 === 1 || at === last
    hash = isRight ? await sha256(NODE, other, hash) : await sha256(NODE, hash, other)
    if (isRight)
      while (at % 2 === 0 && at !== 0) {
        at /= 2
        last = Math.floor(last / 2)
      }
    at = Math.floor(at / 2)
    last = Math.floor(last / 2)
  }
  return last === 0 ? hexOf(hash) : undefined
}

/** JSON with its members in order. The values of a head are texts and whole numbers, so nothing else is needed. */
const canonical = (value: unknown): string => {
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  const members = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(',')}}`
}

const isSigned = async ({ consistency: _, signature, public_key, ...signed }: AuditHead): Promise<boolean> => {
  const der = bytesOfBase64(public_key)
  if (!hexOf(await sha256(der)).startsWith(signed.key)) return false
  const key = await crypto.subtle.importKey('spki', der, 'Ed25519', false, ['verify'])
  return crypto.subtle.verify('Ed25519', key, bytesOfBase64(signature), new TextEncoder().encode(canonical(signed)))
}

export type Check = { readonly passed: boolean; readonly says: string }

/** What a reader may have kept of an earlier visit. */
export type KeptHead = Pick<AuditHead, 'tree_size' | 'root' | 'public_key'>

/** A head as it is at GET /audit/heads, from the reader's own copy. Throws for another text. */
export const keptHeadOf = (text: string): KeptHead => {
  const { tree_size, root, public_key } = JSON.parse(text) as Partial<AuditHead>
  if (typeof tree_size !== 'number' || typeof root !== 'string' || typeof public_key !== 'string')
    throw new Error('This is no head: it needs tree_size, root and public_key.')
  return { tree_size, root, public_key }
}

/** All checks of a proof, each with its outcome. `kept` is compared where the proof is against it. */
export const verify = async (proof: AuditProof, kept: KeptHead | undefined): Promise<readonly Check[]> => {
  const { head, event, withheld, leaf_hash, event_state } = proof
  const isWhole = event !== null && withheld.length === 0
  const leaf = isWhole ? hexOf(await sha256(LEAF, new TextEncoder().encode(event))) : undefined
  return [
    leaf === undefined
      ? {
          passed: event_state === 'present',
          says: `Part of the event is withheld (${withheld.map(({ reason }) => reason).join(', ') || 'missing'}), so its hash cannot be computed here; the service says that it is ${event_state}`,
        }
      : { passed: leaf === leaf_hash, says: 'The hash of the event is that of the leaf' },
    {
      passed: (await rootOf(proof)) === head.root,
      says: `The path leads from leaf ${proof.leaf_index} to the root of the head of ${head.tree_size} events`,
    },
    { passed: await isSigned(head), says: `The head is signed by the key ${head.key}` },
    ...(kept === undefined
      ? []
      : [
          {
            passed: kept.tree_size === head.tree_size && kept.root === head.root,
            says: 'The head is the one that you kept',
          },
          { passed: kept.public_key === head.public_key, says: 'Its key is the one that you kept' },
        ]),
  ]
}
