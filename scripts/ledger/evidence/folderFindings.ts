import type { Finding } from '../verify/check.ts'
import type { EventsChecked } from './eventsCheck.ts'
import type { Manifest } from './format.ts'

/** The findings about the events of an export: what the comparison with the leaves and the manifest says. */

/**
 * The secret of the log (src/logIdentity/idSecret.ts) is one event, which no export has. The marks of withheld leaves are not signed, so
 * that more of them in an export of all events stand for events that were taken away.
 */
const OWN_SECRETS = 1

export const withheldFinding = (
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
