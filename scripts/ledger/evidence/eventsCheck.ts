import { Frontier, leafHash } from '../../../src/evidence/merkle.ts'
import type { Line } from '../../../src/evidence/lines.ts'
import type { Finding } from '../verify/check.ts'
import { jsonIn } from './files.ts'
import { type LeafLine, leafLineSchema } from './format.ts'
import type { RootComparison } from './roots.ts'

/**
 * Compares the events of an export with its leaves, line by line, while the tree grows. Both files are read as streams; at the
 * first difference the rest is only read for the tree.
 */

/** The place where the events first differ from the leaves. `line` is absent where the file of events ends. */
export type Difference = {
  readonly leaf: LeafLine
  readonly line: Line | undefined
  /** Whether the line is whole, so that it has a hash that can be compared with the heads. */
  readonly isWhole: boolean
}

export type EventsChecked = {
  readonly difference: Difference | undefined
  /** The first line of the leaves that is none, after which no tree can be computed. */
  readonly badLeaf: Finding | undefined
  /** The first withheld leaf that is a finding of its own. */
  readonly withheld: Finding | undefined
  /** How many leaves have no event in the export, and the indexes of the first of them. */
  readonly withheldCount: number
  readonly withheldFirst: readonly number[]
  /** How many events are as they were signed. */
  readonly eventCount: number
  /** The first line of the events beyond the last leaf. */
  readonly surplus: Line | undefined
  /** The first event of a version that this program does not know. */
  readonly unknownVersion: Line | undefined
  readonly tree: Frontier
  /** The tree with the event of the difference in place of its leaf. */
  readonly treeOfEvents: Frontier
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

export type EventFiles = {
  readonly leaves: AsyncIterable<Line>
  readonly events: AsyncIterable<Line>
  readonly comparisons: readonly RootComparison[]
  readonly advance: () => void
}

/** Long because the two files and the trees are read side by side. */
export const checkEvents = async ({ leaves, events, comparisons, advance }: EventFiles): Promise<EventsChecked> => {
  const [tree, treeOfEvents] = [new Frontier(), new Frontier()]
  const outcome: { -readonly [N in keyof EventsChecked]?: EventsChecked[N] } = {}
  let [withheldCount, eventCount] = [0, 0]
  const withheldFirst: number[] = []
  const rest = events[Symbol.asyncIterator]()
  for (const one of comparisons) await one.reached(tree)
  for await (const line of leaves) {
    const leaf = leafIn(line, tree.size)
    if ('kind' in leaf) {
      outcome.badLeaf = leaf
      break
    }
    const hash = Buffer.from(leaf.leaf, 'hex')
    let hashOfEvent: Buffer = hash
    outcome.withheld ??= withheldFinding(leaf)
    if (leaf.withheld !== undefined) {
      withheldCount += 1
      if (withheldFirst.length < WITHHELD_NAMED_MAX) withheldFirst.push(leaf.index)
    }
    if (leaf.withheld === undefined && outcome.difference === undefined) {
      const { done, value: event } = await rest.next()
      const own = done || event.flaw !== undefined ? undefined : leafHash(event.bytes)
      if (own?.equals(hash) !== true)
        outcome.difference = { leaf, line: done ? undefined : event, isWhole: own !== undefined }
      else {
        eventCount += 1
        if (!isVersion1(event)) outcome.unknownVersion ??= event
      }
      hashOfEvent = own ?? hash
    }
    tree.append(hash)
    treeOfEvents.append(hashOfEvent)
    for (const one of comparisons) await one.reached(tree)
    advance()
  }
  if (outcome.difference === undefined && outcome.badLeaf === undefined) {
    const { done, value } = await rest.next()
    if (!done) outcome.surplus = value
  }
  await rest.return?.(undefined)
  const { difference, badLeaf, withheld, surplus, unknownVersion } = outcome
  const counts = { withheldCount, withheldFirst, eventCount }
  return { difference, badLeaf, withheld, surplus, unknownVersion, ...counts, tree, treeOfEvents }
}
