import { Frontier, leafHash } from '../../../src/evidence/merkle.ts'
import type { Line } from '../../../src/evidence/lines.ts'
import type { Finding } from '../verify/check.ts'
import { jsonIn } from './files.ts'
import { type LeafLine, leafLineSchema, type Manifest } from './format.ts'
import type { RootComparison } from './roots.ts'

/** Compares events with leaves as streams; after the first difference it reads on for the tree alone. */

/** The place where the events first differ from the leaves. `line` is absent where the file of events ends. */
export type Difference = {
  readonly leaf: LeafLine
  readonly line: Line | undefined
  /** Whether the line is whole, so that it has a hash that can be compared with the heads. */
  readonly isWhole: boolean
}

/** The last member of every event of version 1, by the order of RFC 8785. */
const VERSION_1 = Buffer.from('"v":1}')
const isVersion1 = ({ bytes }: Line): boolean => bytes.subarray(-VERSION_1.length).equals(VERSION_1)

const leafIn = (line: Line, index: number): LeafLine | Finding => {
  const json = jsonIn(line)
  const parsed = 'value' in json ? leafLineSchema.safeParse(json.value) : undefined
  const place = { line: line.number }
  if (parsed?.success !== true)
    return {
      kind: 'edited',
      detail: `Line ${line.number} of leaves.jsonl is not a leaf: ${'unreadable' in json ? json.unreadable : 'it has other members'}.`,
      place,
    }
  if (parsed.data.index === index) return parsed.data
  const kind = parsed.data.index > index ? 'missing' : 'reordered'
  return {
    kind,
    detail: `Line ${line.number} of leaves.jsonl has index ${parsed.data.index} instead of ${index}.`,
    place,
  }
}

const WITHHELD_NAMED_MAX = 10
const WITHHELD_KINDS = { changed: 'edited', missing: 'missing' } as const

const withheldFinding = ({ index, withheld }: LeafLine): Finding | undefined =>
  withheld === undefined || withheld === 'present'
    ? undefined
    : {
        kind: WITHHELD_KINDS[withheld],
        detail: `The event of index ${index}, which is withheld, was ${withheld} in the log when it was exported.`,
        place: { index },
      }

type EventFiles = {
  readonly leaves: AsyncIterable<Line>
  readonly events: AsyncIterable<Line>
  readonly comparisons: readonly RootComparison[]
  readonly advance: () => void
}

/** Long because the two files and the trees are read side by side. */
export const checkEvents = async ({ leaves, events, comparisons, advance }: EventFiles) => {
  const [tree, treeOfEvents] = [new Frontier(), new Frontier()]
  let difference: Difference | undefined
  let badLeaf: Finding | undefined
  let withheld: Finding | undefined
  let surplus: Line | undefined
  let unknownVersion: Line | undefined
  let [withheldCount, eventCount] = [0, 0]
  const withheldFirst: number[] = []
  const rest = events[Symbol.asyncIterator]()
  for (const one of comparisons) await one.reached(tree)
  for await (const line of leaves) {
    const leaf = leafIn(line, tree.size)
    if ('kind' in leaf) {
      badLeaf = leaf
      break
    }
    const hash = Buffer.from(leaf.leaf, 'hex')
    let hashOfEvent: Buffer = hash
    withheld ??= withheldFinding(leaf)
    if (leaf.withheld !== undefined) {
      withheldCount += 1
      if (withheldFirst.length < WITHHELD_NAMED_MAX) withheldFirst.push(leaf.index)
    }
    if (leaf.withheld === undefined && difference === undefined) {
      const { done, value: event } = await rest.next()
      const own = done || event.flaw !== undefined ? undefined : leafHash(event.bytes)
      if (own?.equals(hash) !== true) difference = { leaf, line: done ? undefined : event, isWhole: own !== undefined }
      else {
        eventCount += 1
        if (!isVersion1(event)) unknownVersion ??= event
      }
      hashOfEvent = own ?? hash
    }
    tree.append(hash)
    treeOfEvents.append(hashOfEvent)
    for (const one of comparisons) await one.reached(tree)
    advance()
  }
  if (difference === undefined && badLeaf === undefined) {
    const { done, value } = await rest.next()
    if (!done) surplus = value
  }
  await rest.return?.(undefined)
  return {
    difference,
    /** The first line of the leaves that is none, after which no tree can be computed. */
    badLeaf,
    /** The first withheld leaf that is a finding of its own. */
    withheld,
    /** The first line of the events beyond the last leaf. */
    surplus,
    /** The first event of a version that this program does not know. */
    unknownVersion,
    /** How many leaves have no event in the export, and the indexes of the first of them. */
    withheldCount,
    withheldFirst,
    /** How many events are as they were signed. */
    eventCount,
    tree,
    /** The tree with the event of the difference in place of its leaf. */
    treeOfEvents,
  }
}
export type EventsChecked = Awaited<ReturnType<typeof checkEvents>>

/**
 * The secret of the log (src/logIdentity/idSecret.ts) is one event, which no export has. The marks of withheld leaves are not signed, so
 * that more of them in an export of all events stand for events that were taken away.
 */
const OWN_SECRETS = 1

export const surplusOfWithheld = (
  { withheldCount, withheldFirst }: EventsChecked,
  { tenant }: Manifest,
): Finding | undefined =>
  tenant !== null || withheldCount <= OWN_SECRETS
    ? undefined
    : {
        kind: 'missing',
        detail:
          `${withheldCount} leaves have no event, and an export of all events withholds ${OWN_SECRETS}, the secret of the log: ` +
          `events were taken away, among those of the indexes ${withheldFirst.join(', ')}${withheldCount > withheldFirst.length ? ', …' : ''}.`,
        place: { index: withheldFirst.at(-1) ?? 0 },
      }

export const countFinding = (checked: EventsChecked, { events }: Manifest): Finding | undefined => {
  const { difference, badLeaf, surplus, eventCount } = checked
  if (difference ?? badLeaf ?? surplus) return undefined
  return eventCount === events
    ? undefined
    : { kind: 'edited', detail: `events.jsonl has ${eventCount} events, and the manifest says ${events}.` }
}

/** As of a tenant whose name has a typing error. */
export const emptyFinding = ({ events }: Manifest): Finding | undefined =>
  events > 0 ? undefined : { kind: 'not_compared', detail: 'The export has no event, so that no event was compared.' }

export const sizeFinding = ({ tree, badLeaf }: EventsChecked, { head }: Manifest): Finding | undefined => {
  if (badLeaf !== undefined || tree.size === head.tree_size) return undefined
  const kind = tree.size < head.tree_size ? 'truncated' : 'surplus'
  return {
    kind,
    detail: `leaves.jsonl has ${tree.size} leaves, and the head of the manifest has ${head.tree_size}.`,
    place: { index: Math.min(tree.size, head.tree_size) },
  }
}

export const endFinding = ({ tree, badLeaf }: EventsChecked, { head }: Manifest): Finding | undefined =>
  badLeaf === undefined && tree.size === head.tree_size && tree.root().toString('hex') !== head.root
    ? {
        kind: 'edited',
        detail: 'The tree does not lead to the head of the manifest.',
        place: { to_index: tree.size - 1 },
      }
    : undefined

/** A leaf that was changed in place of its event: the event leads to the signed head. */
export const changedLeaf = ({ treeOfEvents, difference }: EventsChecked, { head }: Manifest): Finding | undefined =>
  difference?.isWhole === true &&
  treeOfEvents.size === head.tree_size &&
  treeOfEvents.root().toString('hex') === head.root
    ? {
        kind: 'edited',
        detail: `The leaf of index ${difference.leaf.index} in leaves.jsonl was changed; its event is as it was signed.`,
        place: { index: difference.leaf.index },
      }
    : undefined

export const lineFindings = ({ surplus, unknownVersion }: EventsChecked): readonly (Finding | undefined)[] => [
  surplus && {
    kind: 'surplus',
    detail: `Line ${surplus.number} of events.jsonl is beyond the last signed event.`,
    place: { line: surplus.number },
  },
  unknownVersion && {
    kind: 'unknown_version',
    detail: `Line ${unknownVersion.number} of events.jsonl has a version that this program does not know; its hash fits.`,
    place: { line: unknownVersion.number },
  },
]
