import { reaches } from '../../../src/evidence/continuity.ts'
import { openHeadFile } from '../../../src/evidence/headFile.ts'
import type { Head } from '../../../src/evidence/heads.ts'
import { allHeads, lastHead, publicKeys } from '../../../src/evidence/headStore.ts'
import { leavesBelow } from '../../../src/evidence/leaves.ts'
import { createLogComparison } from '../../../src/evidence/liveComparison.ts'
import { Frontier } from '../../../src/evidence/merkle.ts'
import { eventsUpTo, pairsOf } from '../../../src/evidence/pairing.ts'
import { rootAt, treeSize } from '../../../src/evidence/tree.ts'
import { realWorld } from '../../../src/clockAndRandomness.ts'
import { relationExists } from '../../../src/schema/existingRelations.ts'
import { linesIn } from '../evidence/files.ts'
import { checkHeads, headIn } from '../evidence/headsCheck.ts'
import { RootComparison } from '../evidence/roots.ts'
import type { Finding, Outcome, Verified, VerifyCheck } from './check.ts'

/** The check of the log against the tree and the signed heads, in Postgres and in the file outside it. */

/** The heads up to the one with which the check began: those that are signed meanwhile are left out. */
async function* headsUpTo(heads: AsyncIterable<Head>, { generation, tree_size }: Head): AsyncGenerator<Head> {
  for await (const head of heads) if (head.generation === generation && head.tree_size <= tree_size) yield head
}

async function* headsInFile({ config, signal }: Verified): AsyncGenerator<Head> {
  for await (const line of linesIn(config.evidence.headsFile, signal)) {
    const head = headIn(line)
    if (!('unreadable' in head)) yield head
  }
}

/** The newest head of the file, which the tree must have reached: the file is written first. */
const fileFinding = async ({ config, database: { sql } }: Verified): Promise<Finding | undefined> => {
  const { path, last } = openHeadFile(config.evidence.headsFile)
  // A damaged last line is found by the check of the heads.
  const head = await last().catch(() => undefined)
  if (head === undefined || (await lastHead(sql))?.generation !== head.generation) return undefined
  const size = await treeSize(sql)
  const place = { tree_size: head.tree_size }
  if (size < head.tree_size)
    return {
      kind: 'truncated',
      detail: `The tree in Postgres has ${size} events, and the head of ${head.time} in ${path} has ${head.tree_size}.`,
      place,
    }
  return (await rootAt(sql, head.tree_size)).toString('hex') === head.root
    ? undefined
    : { kind: 'edited', detail: `The tree in Postgres does not lead to the head of ${head.time} in ${path}.`, place }
}

const compareLog = async (verified: Verified, head: Head): Promise<Outcome> => {
  const { store, database, startProgress, signal } = verified
  const { sql } = database
  const comparison = createLogComparison({ store, sql })
  const comparisons = [
    new RootComparison(headsUpTo(allHeads(sql), head), 'Postgres'),
    new RootComparison(headsUpTo(headsInFile(verified), head), verified.config.evidence.headsFile),
  ]
  const tree = new Frontier()
  const progress = startProgress('evidence', 'events', { total: head.tree_size })
  try {
    const leaves = leavesBelow(sql, head.tree_size)
    for await (const pair of pairsOf(leaves, eventsUpTo(store, BigInt(head.position), signal))) {
      await comparison.compare(pair)
      if (pair.leaf === undefined) continue
      tree.append(pair.leaf.hash)
      for (const one of comparisons) await one.reached(tree)
      progress.advance(1)
    }
    await comparison.end()
  } finally {
    progress.end()
  }
  const heads = comparisons.reduce((sum, { compared }) => sum + compared, 0)
  const findings: Finding[] = [...comparison.findings]
  for (const one of comparisons) {
    const finding = one.finding()
    if (finding) findings.push(finding)
  }
  return {
    detail: `${tree.size} sealed events were compared with the log and with ${heads} heads, up to that of ${head.time}.`,
    findings,
    counts: { events: tree.size, differing: comparison.differing(), heads },
  }
}

const run = async (verified: Verified): Promise<Outcome> => {
  const { store, database, config, signal } = verified
  const { sql } = database
  const head = (await relationExists(sql, 'evidence_heads')) ? await lastHead(sql) : undefined
  if (head === undefined) return { detail: 'No head was signed yet.', findings: [], skipped: true }
  // A node that follows the leader may be behind for a moment.
  await reaches(store, BigInt(head.position), realWorld())
  const log = await compareLog(verified, head)
  const lines = linesIn(config.evidence.headsFile, signal)
  const heads = await checkHeads(lines, await publicKeys(sql), { mayBeTorn: true })
  const file = await fileFinding(verified)
  return { ...log, findings: [...log.findings, ...heads.findings, ...(file ? [file] : [])] }
}

export const evidenceCheck: VerifyCheck = { name: 'evidence', run }
