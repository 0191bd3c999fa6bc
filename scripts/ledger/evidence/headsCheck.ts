import { counted } from '../print.ts'
import { follows, type Head, headSchema, isSigned, type PublicKeys } from '../../../src/evidence/heads.ts'
import type { Line } from '../../../src/evidence/lines.ts'
import type { Finding, Outcome } from '../verify/check.ts'
import { jsonIn } from './files.ts'

/** The check of a file of heads by itself: each is signed, and each tree begins with the one before. */

/** Named each; more are counted. */
const FINDINGS_MAX = 10

export const headIn = (line: Line): Head | { readonly unreadable: string } => {
  const json = jsonIn(line)
  if ('unreadable' in json) return json
  const parsed = headSchema.safeParse(json.value)
  if (parsed.success) return parsed.data
  const { path, message } = parsed.error.issues[0] ?? { path: [], message: '' }
  return { unreadable: path[0] === 'v' ? 'its version is unknown to this program' : `${path.join('.')}: ${message}` }
}

/** The heads of a generation in a file; lines that are none, or are not signed, are found by the check of the heads. */
export async function* headsOf(
  lines: AsyncIterable<Line>,
  generation: number,
  keys?: PublicKeys,
): AsyncGenerator<Head> {
  for await (const line of lines) {
    const head = headIn(line)
    if (!('unreadable' in head) && head.generation === generation && (!keys || isSigned(head, keys))) yield head
  }
}

const flawOf = (line: Line, head: Head, before: Head | undefined, keys: PublicKeys): Finding | undefined => {
  const named = `the head of ${counted(head.tree_size, 'event')} in line ${line.number}`
  const place = { line: line.number, tree_size: head.tree_size }
  const missing = (why: string): Finding => ({
    kind: 'missing',
    detail: `Heads before ${named} are missing: it ${why}.`,
    place,
  })
  if (!keys.has(head.key))
    return {
      kind: 'unknown_key',
      detail:
        `Key ${head.key}, which signed ${named}, is not among the keys that you passed (${[...keys.keys()].join(', ')}). ` +
        'Ask the operator of the service, by a channel that you trust, whether this is its public key ' +
        '(npm run -s ledger -- evidence key prints it). If it is, pass it with --key; if not, treat the heads as forged.',
      place,
    }
  if (!isSigned(head, keys)) return { kind: 'edited', detail: `The signature of ${named} does not fit.`, place }
  const { previous_size, restart } = head
  if (before?.generation !== head.generation) {
    if (before !== undefined && restart === undefined) return missing('begins no generation')
    return previous_size === (restart?.kept_size ?? 0) ? undefined : missing(`follows one of ${previous_size}`)
  }
  if (previous_size > before.tree_size) return missing(`follows one of ${previous_size}`)
  if (previous_size === before.tree_size && !follows(before, head))
    return { kind: 'edited', detail: `The tree of ${named} does not begin with that of the head before.`, place }
  return undefined
}

/** A key that was replaced, because it was stolen perhaps, may be in anybody's hands. */
const replacedFlaw = (
  line: Line,
  head: Head,
  replaced: ReadonlyMap<string, string>,
  keys: PublicKeys,
): Finding | undefined => {
  const { key, tree_size } = head
  const by = replaced.get(key)
  if (by === undefined || !isSigned(head, keys)) return undefined
  const detail =
    `Key ${key} signed the head of ${counted(tree_size, 'event')} in line ${line.number} after key ${by} had replaced it: ` +
    'whoever has the former key may have forged it.'
  return { kind: 'replaced_key', detail, place: { line: line.number, tree_size } }
}

/** `mayBeTorn`: the last line of the service's file may be: a process was killed in it, and it never counted. */
export const checkHeads = async (
  lines: AsyncIterable<Line>,
  keys: PublicKeys,
  { mayBeTorn = false, advance = () => undefined }: { mayBeTorn?: boolean; advance?: () => void } = {},
): Promise<Outcome & { readonly last: Head | undefined }> => {
  const findings: Finding[] = []
  const unknownKeys = new Set<string>()
  /** By replaced key: the one that signed after it. */
  const replaced = new Map<string, string>()
  let signer: string | undefined
  let [count, before]: [number, Head | undefined] = [0, undefined]
  for await (const line of lines) {
    if (line.flaw === 'torn' && mayBeTorn) break
    const head = headIn(line)
    if ('unreadable' in head) {
      if (findings.length < FINDINGS_MAX)
        findings.push({
          kind: 'edited',
          detail: `Line ${line.number} of the heads is not a head: ${head.unreadable}.`,
          place: { line: line.number },
        })
      continue
    }
    const isUnknown = unknownKeys.has(head.key)
    const flaw = isUnknown ? undefined : (replacedFlaw(line, head, replaced, keys) ?? flawOf(line, head, before, keys))
    if (!isUnknown && flaw === undefined) {
      if (signer !== undefined && signer !== head.key) replaced.set(signer, head.key)
      signer = head.key
    }
    // One finding for a key, which has usually signed all heads.
    if (flaw?.kind === 'unknown_key') unknownKeys.add(head.key)
    if (flaw && findings.length < FINDINGS_MAX) findings.push(flaw)
    count += 1
    before = head
    advance()
  }
  return {
    detail: `${counted(count, 'head')} ${count === 1 ? 'was' : 'were'} read.`,
    findings,
    counts: { heads: count },
    last: before,
  }
}
