import { reaches } from '../../../src/evidence/continuity.ts'
import { openHeadFile } from '../../../src/evidence/headFile.ts'
import { newestTrusted, trustedBy } from '../../../src/evidence/headAdoption.ts'
import { type Head, isLater, type PublicKeys } from '../../../src/evidence/heads.ts'
import { allHeads, publicKeys, type Restart, restartRows } from '../../../src/evidence/headStore.ts'
import { leavesBelow, positionOfLeaf } from '../../../src/evidence/leaves.ts'
import { createLogComparison } from '../../../src/evidence/liveComparison.ts'
import { Frontier } from '../../../src/evidence/merkle.ts'
import { eventsUpTo, pairsOf } from '../../../src/evidence/pairing.ts'
import { rootAt, treeSize } from '../../../src/evidence/tree.ts'
import type { Sql } from '../../../src/ports.ts'
import { relationExists } from '../../../src/schema/existingRelations.ts'
import { linesIn } from '../evidence/files.ts'
import { checkHeads, headsOf } from '../evidence/headsCheck.ts'
import { boundBy, generationsOf, type Restarts, restartsIn, sentencesOn } from '../evidence/restarts.ts'
import { RootComparison } from '../evidence/roots.ts'
import { type Finding, nothingCompared, type Outcome, type Verified, type VerifyCheck } from './check.ts'

/**
 * The check of the log against the tree and the signed heads, in Postgres and in the file outside it. Everything in Postgres may have
 * been written by others: what excuses a head comes from the file, and the newest head
 * from it too, or from Postgres with the signature of the key that signed the file last.
 */

type Compared = {
  /** The newest head of the file or of Postgres. */
  readonly head: Head
  readonly keys: PublicKeys
  readonly restarts: Restarts
  readonly isTrusted: (head: Head) => boolean
}

async function* selected(heads: AsyncIterable<Head>, isSelected: (head: Head) => boolean): AsyncGenerator<Head> {
  for await (const head of heads) if (isSelected(head)) yield head
}

/** The first head of Postgres that the service did not sign; more are not named. */
const untrustedFindings = async (sql: Sql, isTrusted: Compared['isTrusted']): Promise<readonly Finding[]> => {
  for await (const head of selected(allHeads(sql), one => !isTrusted(one))) {
    const { generation, tree_size, time, key } = head
    const detail = `In Postgres the head of ${tree_size} events of generation ${generation}, of ${time} with the key ${key}, is not signed by the key that signed the heads of the file at that place.`
    return [{ kind: 'edited', detail, place: { tree_size, generation } }]
  }
  return []
}

/** The heads of each generation, without those that a restart has abandoned. */
const comparisonsOf = ({ database: { sql }, config, signal }: Verified, compared: Compared) => {
  const { head, keys, restarts, isTrusted } = compared
  const path = config.evidence.headsFile
  return generationsOf(head, restarts).flatMap(of => [
    new RootComparison(
      boundBy(
        selected(allHeads(sql), one => one.generation === of && isTrusted(one)),
        restarts,
      ),
      'Postgres',
    ),
    new RootComparison(boundBy(headsOf(linesIn(path, signal), of, keys), restarts), path),
  ])
}

/** The newest head of the file, which the tree must have reached: the file is written first. */
const fileFinding = async ({ config, database: { sql } }: Verified): Promise<Finding | undefined> => {
  const { path, last } = openHeadFile(config.evidence.headsFile)
  // A damaged last line is found by the check of the heads.
  const head = await last().catch(() => undefined)
  if (head === undefined) return undefined
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

const isSameRestart = (row: Restart, signed: NonNullable<Head['restart']>): boolean =>
  row.kept_size === signed.kept_size &&
  row.abandoned_size === signed.abandoned_size &&
  row.abandoned_root === signed.abandoned_root &&
  row.audit_record === signed.audit_record

const REMEDY =
  'Compare its audit record with what you know of the restore; npm run ledger -- evidence accept --reason TEXT replaces it.'

/** Rows of restarts that are not those of signed heads. */
const rowFindings = async ({ config, database: { sql } }: Verified, restarts: Restarts): Promise<Finding[]> => {
  const path = config.evidence.headsFile
  return (await restartRows(sql)).flatMap((row): Finding[] => {
    const { generation, audit_record, accepted_by } = row
    const signed = restarts.get(generation)
    if (signed && isSameRestart(row, signed)) return []
    const named = `The restart of generation ${generation} in Postgres (audit record ${audit_record}, by ${accepted_by})`
    const detail = signed
      ? `${named} is not the signed one in ${path}.`
      : `${named} has no signed head in ${path}. ${REMEDY}`
    return [{ kind: signed ? 'edited' : 'unsigned_restart', detail, place: { generation } }]
  })
}

/** A comparison with Postgres alone proves nothing to those who doubt its writers. */
const emptyFileFinding = (path: string, { heads = 0 }: NonNullable<Outcome['counts']>): Finding[] =>
  heads > 0
    ? []
    : [
        {
          kind: 'not_compared',
          detail: `The file of heads, ${path}, has no head, and Postgres has some: nothing outside the databases was compared. Name the file by EVIDENCE_HEADS_FILE.`,
        },
      ]

/** Heads up to the newest one that the tree did not reach: what they bind was compared with nothing. */
const unreachedFindings = async (comparisons: readonly RootComparison[], newest: Head): Promise<Finding[]> => {
  for (const one of comparisons)
    for await (const head of one.rest()) {
      if (isLater(head, newest)) continue
      const { tree_size, generation, time } = head
      const detail = `The tree in Postgres does not reach the head of ${tree_size} events of generation ${generation}, of ${time}.`
      return [{ kind: 'truncated', detail, place: { tree_size, generation } }]
    }
  return []
}

const compareLog = async (verified: Verified, compared: Compared) => {
  const { store, database, world, startProgress, signal } = verified
  const { sql } = database
  const { head } = compared
  const comparison = createLogComparison({ store, sql, world })
  const comparisons = comparisonsOf(verified, compared)
  const size = Math.min(head.tree_size, await treeSize(sql))
  const position = size === head.tree_size ? BigInt(head.position) : await positionOfLeaf(sql, size - 1)
  const tree = new Frontier()
  let unreached: readonly Finding[] = []
  const progress = startProgress('evidence', 'events', { total: size })
  try {
    for await (const pair of pairsOf(leavesBelow(sql, size), eventsUpTo(store, position, signal))) {
      await comparison.compare(pair)
      if (pair.leaf === undefined) continue
      tree.append(pair.leaf.hash)
      for (const one of comparisons) await one.reached(tree)
      progress.advance(1)
    }
    await comparison.end()
    unreached = await unreachedFindings(comparisons, head)
  } finally {
    progress.end()
    for (const one of comparisons) await one.close()
  }
  const heads = comparisons.reduce((sum, one) => sum + one.compared, 0)
  const findings = [...comparison.findings, ...comparisons.flatMap(one => one.finding() ?? [])]
  return {
    detail: `${tree.size} signed events were compared with the log and with ${heads} heads, up to that of ${head.time}.${sentencesOn(compared.restarts)}`,
    findings,
    unreached,
    counts: { events: tree.size, differing: comparison.differing(), heads },
  }
}

/** Production may have no key, and signs nothing then. */
const withoutHeads = async (verified: Verified, signed = 0): Promise<Outcome> => {
  const { signingKey, inProduction } = verified.config.evidence
  const reason = 'No head was signed yet.'
  if (signingKey === undefined && inProduction && signed === 0) return { detail: reason, findings: [], skipped: true }
  return nothingCompared(verified, reason)
}

/** The file is there against those who can remove the table. */
const withoutTable = async (verified: Verified): Promise<Outcome> => {
  const { path, last } = openHeadFile(verified.config.evidence.headsFile)
  const written = await last().catch(() => 'damaged' as const)
  if (written === undefined) return withoutHeads(verified)
  const detail = `Postgres has no table of heads, and the file ${path} has heads: nothing was compared with them.`
  return { detail: 'The table of heads is not there.', findings: [{ kind: 'missing', detail }] }
}

const run = async (verified: Verified): Promise<Outcome> => {
  const { store, database, config, world, signal } = verified
  const { sql } = database
  const path = config.evidence.headsFile
  if (!(await relationExists(sql, 'evidence_heads'))) return withoutTable(verified)
  const keys = await publicKeys(sql)
  const isTrusted = await trustedBy(path, keys)
  const head = await newestTrusted(sql, openHeadFile(path), isTrusted)
  if (head === undefined) return withoutHeads(verified, await treeSize(sql))
  // A node that follows the leader may be behind for a moment.
  await reaches(store, BigInt(head.position), world)
  const restarts = await restartsIn(linesIn(path, signal), keys)
  const log = await compareLog(verified, { head, keys, restarts, isTrusted })
  const heads = await checkHeads(linesIn(path, signal), keys, { mayBeTorn: true })
  const file = await fileFinding(verified)
  const findings = [
    ...log.findings,
    ...heads.findings,
    ...(file ? [file] : log.unreached),
    ...(await untrustedFindings(sql, isTrusted)),
    ...emptyFileFinding(path, heads.counts ?? {}),
    ...(await rowFindings(verified, restarts)),
  ]
  return { detail: log.detail, counts: log.counts, findings }
}

export const evidenceCheck: VerifyCheck = { name: 'evidence', run }
