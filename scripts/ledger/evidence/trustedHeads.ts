import type { Head } from '../../../src/evidence/heads.ts'
import type { Line } from '../../../src/evidence/lines.ts'
import { StartupError } from '../../../src/lib/startupError.ts'
import { counted } from '../print.ts'
import type { Finding } from '../verify/check.ts'
import type { Manifest } from './format.ts'
import { headIn } from './headsCheck.ts'
import { isBound, type Restarts } from './restarts.ts'
import { RootComparison } from './roots.ts'

/** The manifest is not signed, so that nothing in it excuses a head that cannot be compared. */

type TrustedFile = {
  readonly path: string
  readonly lines: () => AsyncIterable<Line>
  /** The time of the export as the reader knows it, in milliseconds since the epoch: later heads may be beyond its end. */
  readonly asOfMs: number | undefined
}

const groupOf = (head: Head, { head: end }: Manifest, restarts: Restarts) => {
  if (head.generation > end.generation) return 'beyond'
  if (head.generation < end.generation) return isBound(head, restarts) ? 'compared' : 'abandoned'
  return head.tree_size <= end.tree_size ? 'compared' : 'beyond'
}

async function* comparable(file: TrustedFile, generation: number, manifest: Manifest, restarts: Restarts) {
  for await (const line of file.lines()) {
    const head = headIn(line)
    if ('unreadable' in head || head.generation !== generation) continue
    if (groupOf(head, manifest, restarts) === 'compared') yield head
  }
}

type Counted = { heads: number; abandoned: number; later: number; beyond: number; firstBeyond: Head | undefined }

const beyondFinding = ({ beyond, firstBeyond: head }: Counted, path: string, { head: end }: Manifest): Finding[] =>
  head === undefined
    ? []
    : [
        {
          kind: 'truncated',
          detail:
            `The export contains ${end.tree_size} events of generation ${end.generation}, but ${counted(beyond, 'head')} in ${path} ` +
            `${beyond === 1 ? 'covers' : 'cover'} more. The first covers ${head.tree_size} events of generation ${head.generation} and was signed at ${head.time}. ` +
            'If you copied the heads after the export, pass the time of the export, from your own records: --as-of <time>. ' +
            'Otherwise the export was truncated.',
          place: { index: end.tree_size },
        },
      ]

/** Reads the file once. Throws a StartupError for one without a head: a comparison with it would prove nothing. */
export const readTrustedHeads = async (file: TrustedFile, manifest: Manifest, restarts: Restarts) => {
  const { path, asOfMs } = file
  const tally: Counted = { heads: 0, abandoned: 0, later: 0, beyond: 0, firstBeyond: undefined }
  const generations = new Set<number>()
  const flaws: Finding[] = []
  for await (const line of file.lines()) {
    const head = headIn(line)
    if ('unreadable' in head) {
      // The copy of a file may end within the line that was being written.
      if (line.flaw !== 'torn' && flaws.length === 0)
        flaws.push({ kind: 'edited', detail: `Line ${line.number} of ${path} is not a head: ${head.unreadable}.` })
      continue
    }
    tally.heads += 1
    if (head.log !== manifest.log && flaws.length === 0)
      flaws.push({ kind: 'edited', detail: `Line ${line.number} of ${path} is a head of another log, ${head.log}.` })
    const group = groupOf(head, manifest, restarts)
    if (group === 'compared') generations.add(head.generation)
    else if (group === 'abandoned') tally.abandoned += 1
    else if (asOfMs !== undefined && Date.parse(head.time) > asOfMs) tally.later += 1
    else {
      tally.beyond += 1
      tally.firstBeyond ??= head
    }
  }
  if (tally.heads === 0) throw new StartupError(`${path} has no head: there is nothing to compare the export with.`)
  const { abandoned, later } = tally
  return {
    /** One for each generation, to be made while the tree grows. */
    comparisons: [...generations].map(of => new RootComparison(comparable(file, of, manifest, restarts), path)),
    /** The findings about the heads before any is compared. */
    findings: [...flaws, ...beyondFinding(tally, path, manifest)],
    /** A sentence on the heads that are not compared; empty where there are none. */
    detail:
      (abandoned > 0
        ? ` ${counted(abandoned, 'head')} of ${path} ${abandoned === 1 ? 'was' : 'were'} abandoned by an accepted restart, and not compared.`
        : '') + (later > 0 ? ` Not compared: ${counted(later, 'head')} of ${path} later than --as-of.` : ''),
  }
}
