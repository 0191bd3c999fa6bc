import type { EventStore } from '../ports.ts'
import { type Excuses, removalOf } from './continuity.ts'
import { leafOfEvent, type IndexedLeaf } from './leaves.ts'
import { leafHash } from './merkle.ts'
import type { Pair } from './pairing.ts'
import { canonicalRecord } from './record.ts'

/** Names what the log has instead of the events that were signed. */

export type LogFinding = {
  readonly kind: 'edited' | 'reordered' | 'missing' | 'truncated' | 'scavenged' | 'surplus'
  readonly detail: string
  readonly place: Readonly<Record<string, string | number | bigint | null>>
}

export const isAsSigned = ({ leaf, event }: Pair): boolean =>
  leaf !== undefined && event !== undefined && leafHash(canonicalRecord(event)).equals(leaf.hash)

const nameOf = ({ eventId, stream, revision, position }: IndexedLeaf): string =>
  `event ${eventId} (revision ${revision} of ${stream}, position ${position})`

const placeOf = ({ eventId, stream, revision, position, index }: IndexedLeaf) => ({
  event_id: eventId,
  stream,
  revision,
  position,
  index,
})

/** Leaves without events, one after the other in the log. */
type Gap = { readonly first: IndexedLeaf; last: IndexedLeaf; count: number; reason: string | undefined }

const FINDINGS_MAX = 20

type Dependencies = Excuses & { readonly store: EventStore }

const findingOf = async ({ sql }: Dependencies, { leaf, event }: Pair): Promise<LogFinding | undefined> => {
  if (event === undefined) return undefined
  const { id, stream, revision, position } = event
  if (leaf === undefined)
    return {
      kind: 'surplus',
      detail: `Event ${id} (revision ${revision} of ${stream}) at position ${position} was never signed, and later ones were.`,
      place: { event_id: id, stream, revision, position },
    }
  const original = id === leaf.eventId ? leaf : await leafOfEvent(sql, id)
  if (original !== undefined && original.index !== leaf.index)
    return {
      kind: 'reordered',
      detail: `At position ${position} stands ${nameOf(original)}, and ${nameOf(leaf)} was signed there.`,
      place: placeOf(leaf),
    }
  return { kind: 'edited', detail: `${nameOf(leaf)} is not as it was signed.`, place: placeOf(leaf) }
}

const gapFinding = ({ first, count, reason }: Gap, isEnd: boolean): LogFinding => {
  const others = count > 1 ? `, and ${count - 1} more after it,` : ''
  if (reason !== undefined)
    return {
      kind: 'scavenged',
      detail: `${nameOf(first)}${others} is no longer in the log: its stream is ${reason}.`,
      place: placeOf(first),
    }
  return {
    kind: isEnd ? 'truncated' : 'missing',
    detail: isEnd
      ? `The log ends before ${nameOf(first)}: the last ${count} signed events are not in it.`
      : `${nameOf(first)}${others} is not in the log.`,
    place: placeOf(first),
  }
}

/** Long because its functions share the gap that is open. */
export const createLogComparison = (dependencies: Dependencies) => {
  const findings: LogFinding[] = []
  let differing = 0
  let gap: Gap | undefined
  const add = (finding: LogFinding | undefined): void => {
    if (finding !== undefined && findings.length < FINDINGS_MAX) findings.push(finding)
  }
  const closeGap = async (isEnd: boolean): Promise<void> => {
    if (gap === undefined) return
    const isCut = isEnd && gap.reason === undefined && (await dependencies.store.head()) < gap.last.position
    add(gapFinding(gap, isCut))
    gap = undefined
  }
  const lacks = async (leaf: IndexedLeaf): Promise<void> => {
    differing += 1
    const reason = findings.length < FINDINGS_MAX ? await removalOf(dependencies, leaf) : gap?.reason
    if (gap !== undefined && gap.reason === reason) {
      gap.last = leaf
      gap.count += 1
      return
    }
    await closeGap(false)
    gap = { first: leaf, last: leaf, count: 1, reason }
  }
  return {
    /** The first findings, in the order of the log. */
    findings: findings as readonly LogFinding[],
    /** How many events differ. */
    differing: (): number => differing,
    /** Takes the pairs in their order. */
    compare: async (pair: Pair): Promise<void> => {
      if (pair.leaf !== undefined && pair.event === undefined) return lacks(pair.leaf)
      await closeGap(false)
      if (isAsSigned(pair)) return
      differing += 1
      if (findings.length < FINDINGS_MAX) add(await findingOf(dependencies, pair))
    },
    /** To be called after the last pair. */
    end: (): Promise<void> => closeGap(true),
  }
}
