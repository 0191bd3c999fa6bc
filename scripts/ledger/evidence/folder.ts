import { open, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { PublicKeys } from '../../../src/evidence/heads.ts'
import type { Line } from '../../../src/evidence/lines.ts'
import { StartupError } from '../../../src/lib/startupError.ts'
import { counted } from '../print.ts'
import type { Checked, Finding } from '../verify/check.ts'
import type { Progress, StartProgress } from '../progress.ts'
import {
  changedLeaf,
  checkEvents,
  countFinding,
  emptyFinding,
  endFinding,
  lineFindings,
  sizeFinding,
  surplusOfWithheld,
} from './eventsCheck.ts'
import { classify, type Files } from './classify.ts'
import { hashOfFile, linesIn, readManifest, readPublicKeys } from './files.ts'
import { type FileName, FILES, type Manifest } from './format.ts'
import { checkHeads, headsOf } from './headsCheck.ts'
import { type Restarts, restartsIn, sentencesOn } from './restarts.ts'
import { RootComparison } from './roots.ts'
import { readTrustedHeads } from './trustedHeads.ts'

type FolderOptions = {
  readonly folder: string
  /** The files of the public keys that the reader trusts, one key in each; those of the export if absent. */
  readonly keys?: readonly string[] | undefined
  /** The file of heads that the reader trusts. */
  readonly heads?: string | undefined
  /** The time of the export as the reader knows it: trusted heads that were signed later may be beyond its end. */
  readonly asOfMs?: number | undefined
  readonly startProgress: StartProgress
  readonly signal: AbortSignal
}

const unreadable = (detail: string): readonly Checked[] => [
  { check: 'manifest', detail: 'The export cannot be verified.', findings: [{ kind: 'unreadable', detail }] },
]

/** Files whose hash is not that of the manifest, or that are absent. */
const changedFiles = async (folder: string, { files }: Manifest, signal: AbortSignal): Promise<Map<string, string>> => {
  const changed = new Map<string, string>()
  for (const [name, { sha256 }] of Object.entries(files)) {
    if (!Object.values(FILES).includes(name as FileName)) continue
    const hash = await hashOfFile(folder, name, signal)
    if (hash === undefined) changed.set(name, 'is not there')
    else if (hash !== sha256)
      changed.set(name, 'does not match its hash in the manifest: it was changed after the export')
  }
  for (const name of Object.values(FILES)) if (files[name] === undefined) changed.set(name, 'is not in the manifest')
  return changed
}

const filesOutcome = (changed: ReadonlyMap<string, string>): Checked => ({
  check: 'files',
  detail: changed.size === 0 ? 'All file hashes match the manifest.' : 'Files differ from the manifest.',
  findings: [...changed].map(([name, how]) => ({
    kind: 'changed_file',
    detail: `${name} ${how}.`,
    place: { file: name },
  })),
})

/** A reader's trust in the heads would rest on nothing. */
const NOTHING_COMPARED: Finding = {
  kind: 'not_compared',
  detail: 'No trusted head was compared: none of them has a size that the export reaches.',
}

const scopeOf = ({ tenant }: Manifest): string =>
  tenant === null
    ? ''
    : `, as in an export of the tenant ${JSON.stringify(tenant)}, which does not prove that it has all events of the tenant`

type Verifying = Omit<FolderOptions, 'keys'> & {
  readonly manifest: Manifest
  readonly keys: PublicKeys
  readonly progress: Progress
  readonly restarts: Restarts
}

/** Long because it names the findings in the order in which a reader sees them. */
const eventsOutcome = async (verifying: Verifying): Promise<Checked> => {
  const { folder, heads, asOfMs, manifest, keys, restarts, signal, progress } = verifying
  const { generation } = manifest.head
  const lines = (name: FileName): AsyncIterable<Line> => linesIn(join(folder, name), signal)
  const own = new RootComparison(headsOf(lines(FILES.heads), generation, keys), FILES.heads)
  const trusted =
    heads === undefined
      ? undefined
      : await readTrustedHeads({ path: heads, lines: () => linesIn(heads, signal), asOfMs }, manifest, restarts)
  const checked = await checkEvents({
    leaves: lines(FILES.leaves),
    events: lines(FILES.events),
    comparisons: [own, ...(trusted?.comparisons ?? [])],
    advance: () => progress.advance(1),
  })
  const files: Files = { leaves: () => lines(FILES.leaves), events: () => lines(FILES.events) }
  const leafFinding = changedLeaf(checked, manifest)
  const difference = leafFinding ?? (checked.difference && (await classify(files, checked.difference)))
  const comparedWithTrusted = (trusted?.comparisons ?? []).reduce((sum, { compared }) => sum + compared, 0)
  const findings = [
    difference,
    checked.badLeaf,
    checked.withheld,
    sizeFinding(checked, manifest),
    ...(leafFinding ? [] : [own.finding() ?? endFinding(checked, manifest)]),
    surplusOfWithheld(checked, manifest),
    countFinding(checked, manifest),
    emptyFinding(manifest),
    ...(trusted?.comparisons.flatMap(one => [one.finding(), one.passedOverFinding()]) ?? []),
    ...(trusted?.findings ?? []),
    ...(trusted === undefined || comparedWithTrusted > 0 ? [] : [NOTHING_COMPARED]),
    ...lineFindings(checked),
  ].filter(one => one !== undefined)
  const leaves = checked.tree.size
  const compared = own.compared + comparedWithTrusted
  return {
    check: 'events',
    detail: `Compared: ${counted(leaves, 'event')}, ${checked.withheldCount} of them withheld, and ${counted(compared, 'head')}, the latest of ${manifest.head.time}${scopeOf(manifest)}.${trusted?.detail ?? ''}`,
    findings,
    counts: { events: manifest.events, leaves, heads: compared, withheld: checked.withheldCount },
  }
}

/** Heads from elsewhere say nothing of the keys that an export brings, with which the heads after them could be forged. */
const keyOutcome = (keys: PublicKeys, { keys: keyFiles, heads }: FolderOptions): Checked => {
  const ids = [...keys.keys()].join(', ')
  if (keyFiles !== undefined) return { check: 'key', detail: `${ids}, from --key.`, findings: [] }
  const detail = `${ids}, from the export itself. Get the public key of the service separately, and pass it with --key.`
  const unknown = `The only copy of the signing key (${ids}) is in the export itself, so it proves nothing. Ask the operator to send you the public key of the service separately (npm run -s ledger -- evidence key prints it), and pass it with --key.`
  return { check: 'key', detail, findings: heads === undefined ? [] : [{ kind: 'unknown_key', detail: unknown }] }
}

const refuseUnreadable = async (path: string): Promise<void> => {
  try {
    await (await open(path, 'r')).close()
  } catch (error) {
    throw new StartupError(`The file of trusted heads, ${path}, cannot be read.`, error)
  }
  if (!(await stat(path)).isFile()) throw new StartupError(`${path} is not a file of heads.`)
}

/** Verifies the export. Throws a StartupError where there is none. */
export const verifyFolder = async (options: FolderOptions): Promise<readonly Checked[]> => {
  const { signal, startProgress } = options
  const folder = resolve(options.folder)
  if (options.heads !== undefined) await refuseUnreadable(options.heads)
  const read = await readManifest(folder)
  if ('unreadable' in read) return unreadable(`manifest.json cannot be read: ${read.unreadable}.`)
  const { manifest } = read
  const given = options.keys && (await Promise.all(options.keys.map(readPublicKeys))).flat()
  const keys = new Map(given ?? Object.entries(manifest.keys))
  const progress = startProgress('evidence', 'events', { total: manifest.head.tree_size })
  try {
    const changed = await changedFiles(folder, manifest, signal)
    const headLines = linesIn(join(folder, FILES.heads), signal)
    const { last, ...heads } = await checkHeads(headLines, keys)
    const headsFindings = [...heads.findings]
    if (last?.tree_size !== manifest.head.tree_size || last.root !== manifest.head.root)
      headsFindings.push({
        kind: last === undefined || last.tree_size < manifest.head.tree_size ? 'truncated' : 'edited',
        detail: `heads.jsonl ends with the head of ${last?.tree_size ?? 0} events, and the manifest with that of ${manifest.head.tree_size}.`,
        place: { tree_size: last?.tree_size ?? 0 },
      })
    const restarts = await restartsIn(linesIn(join(folder, FILES.heads), signal), keys)
    if (last !== undefined && (last.generation !== manifest.head.generation || last.log !== manifest.log))
      headsFindings.push({
        kind: 'edited',
        detail: `heads.jsonl ends with generation ${last.generation} of the log ${last.log}, and the manifest names generation ${manifest.head.generation} of ${manifest.log}.`,
        place: { tree_size: last.tree_size },
      })
    const events = await eventsOutcome({ ...options, folder, manifest, keys, progress, restarts })
    return [
      filesOutcome(changed),
      keyOutcome(keys, options),
      { check: 'heads', ...heads, detail: heads.detail + sentencesOn(restarts), findings: headsFindings },
      events,
    ]
  } finally {
    progress.end()
  }
}
