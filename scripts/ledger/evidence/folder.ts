import { resolve } from 'node:path'
import { type Head, isSigned, type PublicKeys } from '../../../src/evidence/heads.ts'
import type { Line } from '../../../src/evidence/lines.ts'
import type { Finding, Outcome } from '../verify/check.ts'
import type { Progress, StartProgress } from '../progress.ts'
import { checkEvents, type EventsChecked } from './eventsCheck.ts'
import { classify, type Files } from './classify.ts'
import { fileIn, hashOfFile, linesIn, readManifest, readPublicKey } from './files.ts'
import { type FileName, FILES, type Manifest } from './format.ts'
import { checkHeads, headIn } from './headsCheck.ts'
import { RootComparison } from './roots.ts'

/** Verifies an export of evidence from its files alone. */

export type FolderOptions = {
  readonly folder: string
  /** The file of a public key that the reader trusts. */
  readonly key?: string
  /** The file of heads that the reader trusts. */
  readonly heads?: string
  readonly startProgress: StartProgress
  readonly signal: AbortSignal
}

type Checked = Outcome & { readonly check: string }

const unreadable = (detail: string): readonly Checked[] => [
  { check: 'manifest', detail: 'The export cannot be verified.', findings: [{ kind: 'unreadable', detail }] },
]

/** The heads of a generation in a file; lines that are none, or are not signed, are found by the check of the heads. */
async function* headsOf(lines: AsyncIterable<Line>, generation: number, keys?: PublicKeys): AsyncGenerator<Head> {
  for await (const line of lines) {
    const head = headIn(line)
    if (!('unreadable' in head) && head.generation === generation && (!keys || isSigned(head, keys))) yield head
  }
}

/** Files whose hash is not that of the manifest, or that are absent. */
const changedFiles = async (folder: string, { files }: Manifest, signal: AbortSignal): Promise<Map<string, string>> => {
  const changed = new Map<string, string>()
  for (const [name, { sha256 }] of Object.entries(files)) {
    if (!Object.values(FILES).includes(name as FileName)) continue
    const hash = await hashOfFile(folder, name, signal)
    if (hash === undefined) changed.set(name, 'is not there')
    else if (hash !== sha256) changed.set(name, 'is not as it was exported')
  }
  for (const name of Object.values(FILES)) if (files[name] === undefined) changed.set(name, 'is not in the manifest')
  return changed
}

const filesOutcome = (changed: ReadonlyMap<string, string>): Checked => ({
  check: 'files',
  detail: changed.size === 0 ? 'Each file has the hash of the manifest.' : 'Files differ from the manifest.',
  findings: [...changed].map(([name, how]) => ({
    kind: 'changed_file',
    detail: `${name} ${how}.`,
    place: { file: name },
  })),
})

/** A head is in the file of heads some moments before the database, from which exports are made. */
const HEAD_GRACE_MS = 60_000

/** Trusted heads that the export does not reach, although they were signed before it was made. */
const unreachedHeads = async (
  trusted: RootComparison,
  { created_at, head }: Manifest,
): Promise<Finding | undefined> => {
  for await (const one of trusted.rest())
    if (one.tree_size > head.tree_size && Date.parse(one.time) < Date.parse(created_at) - HEAD_GRACE_MS)
      return {
        kind: 'truncated',
        detail: `The export ends with ${head.tree_size} events, and the trusted head of ${one.time} has ${one.tree_size}.`,
        place: { index: head.tree_size },
      }
  return undefined
}

const sizeFinding = ({ tree, badLeaf }: EventsChecked, { head }: Manifest): Finding | undefined => {
  if (badLeaf !== undefined || tree.size === head.tree_size) return undefined
  const kind = tree.size < head.tree_size ? 'truncated' : 'surplus'
  return {
    kind,
    detail: `leaves.jsonl has ${tree.size} leaves, and the head of the manifest has ${head.tree_size}.`,
    place: { index: Math.min(tree.size, head.tree_size) },
  }
}

const endFinding = ({ tree, badLeaf }: EventsChecked, { head }: Manifest): Finding | undefined =>
  badLeaf === undefined && tree.size === head.tree_size && tree.root().toString('hex') !== head.root
    ? {
        kind: 'edited',
        detail: 'The tree does not lead to the head of the manifest.',
        place: { to_index: tree.size - 1 },
      }
    : undefined

/** A leaf that was changed in place of its event: the event leads to the signed head. */
const changedLeaf = ({ treeOfEvents, difference }: EventsChecked, { head }: Manifest): Finding | undefined =>
  difference?.isWhole === true &&
  treeOfEvents.size === head.tree_size &&
  treeOfEvents.root().toString('hex') === head.root
    ? {
        kind: 'edited',
        detail: `The leaf of index ${difference.leaf.index} in leaves.jsonl was changed; its event is as it was sealed.`,
        place: { index: difference.leaf.index },
      }
    : undefined

const lineFindings = ({ surplus, unknownVersion }: EventsChecked): readonly (Finding | undefined)[] => [
  surplus && {
    kind: 'surplus',
    detail: `Line ${surplus.number} of events.jsonl is beyond the last sealed event.`,
    place: { line: surplus.number },
  },
  unknownVersion && {
    kind: 'unknown_version',
    detail: `Line ${unknownVersion.number} of events.jsonl has a version that this program does not know; its hash fits.`,
    place: { line: unknownVersion.number },
  },
]

type Verifying = FolderOptions & { readonly manifest: Manifest; readonly keys: PublicKeys; readonly progress: Progress }

const eventsOutcome = async ({ folder, heads, manifest, keys, signal, progress }: Verifying): Promise<Checked> => {
  const { generation } = manifest.head
  const lines = (name: FileName): AsyncIterable<Line> => linesIn(fileIn(folder, name), signal)
  const own = new RootComparison(headsOf(lines(FILES.heads), generation, keys), FILES.heads)
  const trusted =
    heads === undefined ? undefined : new RootComparison(headsOf(linesIn(heads, signal), generation), heads)
  const checked = await checkEvents({
    leaves: lines(FILES.leaves),
    events: lines(FILES.events),
    comparisons: trusted ? [own, trusted] : [own],
    advance: () => progress.advance(1),
  })
  const files: Files = { leaves: () => lines(FILES.leaves), events: () => lines(FILES.events) }
  const leafFinding = changedLeaf(checked, manifest)
  const difference = leafFinding ?? (checked.difference && (await classify(files, checked.difference)))
  const findings = [
    difference,
    checked.badLeaf,
    checked.withheld,
    sizeFinding(checked, manifest),
    ...(leafFinding ? [] : [own.finding() ?? endFinding(checked, manifest)]),
    trusted?.finding(),
    trusted && (await unreachedHeads(trusted, manifest)),
    ...lineFindings(checked),
  ].filter(one => one !== undefined)
  const leaves = checked.tree.size
  const compared = own.compared + (trusted?.compared ?? 0)
  return {
    check: 'events',
    detail: `${leaves} leaves were compared with events.jsonl and with ${compared} heads, up to that of ${manifest.head.time}.`,
    findings,
    counts: { events: manifest.events, leaves, heads: compared },
  }
}

const keyOutcome = (keys: PublicKeys, isTrusted: boolean): Checked => ({
  check: 'key',
  detail: `${[...keys.keys()].join(', ')}: ${
    isTrusted
      ? 'the key that was given.'
      : 'the key that the export brings. Compare it with one from elsewhere, and pass that with --key.'
  }`,
  findings: [],
})

/** Verifies the export. Throws a StartupError where there is none. */
export const verifyFolder = async (options: FolderOptions): Promise<readonly Checked[]> => {
  const { signal, startProgress } = options
  const folder = resolve(options.folder)
  const read = await readManifest(folder)
  if ('unreadable' in read) return unreadable(`manifest.json cannot be read: ${read.unreadable}.`)
  const { manifest } = read
  const keys = options.key === undefined ? new Map(Object.entries(manifest.keys)) : await readPublicKey(options.key)
  const progress = startProgress('evidence', 'events', { total: manifest.head.tree_size })
  try {
    const changed = await changedFiles(folder, manifest, signal)
    const headLines = linesIn(fileIn(folder, FILES.heads), signal)
    const { last, ...heads } = await checkHeads(headLines, keys)
    const headsFindings = [...heads.findings]
    if (last?.tree_size !== manifest.head.tree_size || last.root !== manifest.head.root)
      headsFindings.push({
        kind: last === undefined || last.tree_size < manifest.head.tree_size ? 'truncated' : 'edited',
        detail: `heads.jsonl ends with the head of ${last?.tree_size ?? 0} events, and the manifest with that of ${manifest.head.tree_size}.`,
        place: { tree_size: last?.tree_size ?? 0 },
      })
    const events = await eventsOutcome({ ...options, folder, manifest, keys, progress })
    return [
      filesOutcome(changed),
      keyOutcome(keys, options.key !== undefined),
      { check: 'heads', ...heads, findings: headsFindings },
      events,
    ]
  } finally {
    progress.end()
  }
}
