import { timeNow } from '../../../src/lib/time.ts'
import { accessEntity } from '../../../src/commands/entities.ts'
import { handle, type Ledger } from '../../../src/commands/commandHandler.ts'
import { derivedId } from '../../../src/lib/identifiers.ts'
import { reaches, removalOf } from '../../../src/evidence/continuity.ts'
import { adoptHeads } from '../../../src/evidence/headAdoption.ts'
import { openHeadFile } from '../../../src/evidence/headFile.ts'
import { type Head, type HeadRestart, signHead, type SigningKey } from '../../../src/evidence/heads.ts'
import { lastRestart, publicKeys, type Restart, storeHead, storeRestart } from '../../../src/evidence/headStore.ts'
import { leavesBelow, newestLeaves, positionOfLeaf } from '../../../src/evidence/leaves.ts'
import { isAsSigned } from '../../../src/evidence/liveComparison.ts'
import { Frontier } from '../../../src/evidence/merkle.ts'
import { eventsUpTo, type Pair, pairsOf } from '../../../src/evidence/pairing.ts'
import { cutTree, rootAt, HEAD_SIGNING, treeSize } from '../../../src/evidence/tree.ts'
import { supersedeCheckpoint } from '../../../src/feeds/checkpoints.ts'
import type { Database, Sql, World } from '../../../src/ports.ts'
import { StartupError } from '../../../src/lib/startupError.ts'
import { SYSTEM_TENANT } from '../../../streams/envelope.ts'
import { streamOf } from '../../../streams/aggregate.ts'
import { operatorContext } from '../operatorContext.ts'
import { linesIn } from './files.ts'
import { headsOf } from './headsCheck.ts'
import { boundBy, generationsOf, restartsIn } from './restarts.ts'
import { RootComparison } from './roots.ts'

/**
 * Accepts a log that has lost signed events: the tree is cut to the leaves that the log still has, and a new generation of heads
 * begins, with a head that this command signs. One transaction ends the run of head signing first, which a running service begins
 * again after it. The steps, each of which a repeated command finds done:
 *
 *   the audit record   its id follows from the head that is abandoned
 *   the signed head    in the file of heads, which no writer of the databases writes
 *   Postgres           the tree is cut, the head and the row of the restart are stored
 */

type Accepting = {
  readonly ledger: Ledger
  readonly database: Pick<Database, 'transaction'>
  readonly headsFile: string
  /** The key of the service, which signs the acceptance. */
  readonly key: SigningKey
  /** Why the loss is accepted, for the audit record and the signed head. */
  readonly reason: string
  readonly world: Pick<World, 'sleep' | 'now'>
  readonly signal: AbortSignal
}

const IDLE_MAX_MS = 600_000
/** A log of many millions of events has as many leaves to delete. */
const STATEMENT_TIMEOUT_MS = 3_600_000

/** With the statements of the transaction. */
type Within = Accepting & { readonly sql: Sql }

/** A comparison of all events would end at the first difference. */
const isKept = async ({ ledger: { store }, sql, world }: Within, pair: Pair): Promise<boolean> =>
  isAsSigned(pair) ||
  (pair.leaf !== undefined &&
    pair.event === undefined &&
    (await removalOf({ store, sql, world }, pair.leaf)) !== undefined)

/** Comparisons of the tree with the heads that bind it: a tree that was changed together with the log does not lead to them. */
const comparisonsWith = ({ headsFile, signal }: Within, { head, restarts, keys }: SignedHeads): RootComparison[] =>
  generationsOf(head, restarts).map(generation => {
    const heads = headsOf(linesIn(headsFile, signal), generation, keys)
    return new RootComparison(boundBy(heads, restarts), headsFile)
  })

/**
 * The number of leaves, from the first on, that are in the log as they were signed, and lead to the heads. Leaves after the last head
 * that agrees are as doubtful as the one that was changed, unless the leaves up to the next head prove all of them.
 */
const keptSize = async (within: Within, comparisons: readonly RootComparison[], size: number): Promise<number> => {
  const { ledger, sql, signal } = within
  const [newest] = await newestLeaves(sql, 1)
  const tree = new Frontier()
  const agreed = (): number => Math.max(...comparisons.map(({ agreedSize }) => agreedSize))
  /** The leaves before the first that the log has not. */
  let whole: number | undefined
  for (const one of comparisons) await one.reached(tree)
  const events = eventsUpTo(ledger.store, newest?.position ?? 0n, signal)
  for await (const pair of pairsOf(leavesBelow(sql, size), events)) {
    if (whole === undefined && !(await isKept(within, pair))) whole = tree.size
    if (pair.leaf === undefined) continue
    tree.append(pair.leaf.hash)
    for (const one of comparisons) await one.reached(tree)
    if (comparisons.some(one => one.firstDifferent !== undefined)) return agreed()
    if (whole !== undefined && agreed() > whole) return whole
  }
  if (whole === undefined) return tree.size
  return comparisons.some(one => one.hasNext()) ? agreed() : whole
}

/** Stores the record, or finds the one of an earlier attempt. Resolves to the id of its event. */
const recordAcceptance = async ({ ledger, reason }: Accepting, head: Head): Promise<string> => {
  const id = derivedId('acc', 'acceptance of a restored log', head.root, String(head.generation))
  const command = {
    type: 'GrantAccess' as const,
    operation: 'accept_restored_log',
    resource: `head of ${head.tree_size} events: ${reason}`,
  }
  // A rejection: an earlier attempt has recorded it.
  await handle(ledger, accessEntity, id, { command, context: operatorContext(SYSTEM_TENANT), load: 'assume_empty' })
  for await (const event of ledger.store.readStream(streamOf(accessEntity.aggregate, id), { limit: 1 })) return event.id
  throw new Error(`The record of the acceptance, ${id}, is not in the log.`)
}

/** The signed heads, in the file and in Postgres, after each has those of the other. */
const readKnown = async ({ sql, headsFile, key, signal }: Within) => {
  const keys = await publicKeys(sql)
  const head = await adoptHeads(sql, openHeadFile(headsFile), key)
  if (head === undefined) throw new StartupError('No head has been signed yet, so there is nothing to accept.')
  if (!keys.has(key.id))
    throw new StartupError(
      `The key ${key.id} has signed no head of this log: accept with the key of the service, EVIDENCE_SIGNING_KEY or that of its data directory.`,
    )
  const restarts = await restartsIn(linesIn(headsFile, signal), keys)
  /** The generation of the newest row of a restart. */
  const rowGeneration = (await lastRestart(sql))?.generation ?? 1
  return { head, keys, restarts, rowGeneration }
}
type SignedHeads = Awaited<ReturnType<typeof readKnown>>

const restartOf = (generation: number, { accepted, ...restart }: HeadRestart): Restart => ({
  generation,
  ...restart,
  accepted_by: accepted.by,
})

/**
 * Applies the acceptances of the file that Postgres lacks, because it was restored from an older backup or the command was killed: they
 * are signed decisions. Head signing signs the events after the kept ones again, and compares the heads. Undefined where there are none.
 */
const applySigned = async ({ sql }: Within, { restarts, rowGeneration }: SignedHeads): Promise<Restart | undefined> => {
  const lacking = [...restarts].filter(([generation]) => generation > rowGeneration)
  const kept = Math.min(...lacking.map(([, { kept_size }]) => kept_size))
  if (lacking.length > 0 && (await treeSize(sql)) > kept) await cutTree(sql, kept)
  const applied = lacking.map(([generation, restart]) => restartOf(generation, restart))
  for (const restart of applied) await storeRestart(sql, restart)
  return applied.at(-1)
}

/** The events that are kept of the log. Throws a StartupError where it has lost nothing, and there is nothing to confirm. */
const sizeToKeep = async (within: Within, signed: SignedHeads): Promise<number> => {
  const { sql, ledger, world } = within
  const { head, rowGeneration } = signed
  const size = await treeSize(sql)
  const [newest] = await newestLeaves(sql, 1)
  // A follower that is behind would look like a log that was cut.
  if (newest !== undefined) await reaches(ledger.store, newest.position, world)
  const comparisons = comparisonsWith(within, signed)
  try {
    const kept = await keptSize(within, comparisons, size)
    const isWhole = kept === size && size >= head.tree_size
    if (isWhole && rowGeneration <= head.generation)
      throw new StartupError('The log has every signed event as it was signed, so there is nothing to accept.')
    return kept
  } finally {
    for (const one of comparisons) await one.close()
  }
}

const signRestart = async (within: Within, signed: SignedHeads): Promise<Head> => {
  const { sql, reason, world, key } = within
  const { head } = signed
  const kept = await sizeToKeep(within, signed)
  const unsigned = {
    v: 1 as const,
    log: head.log,
    generation: head.generation + 1,
    tree_size: kept,
    root: (await rootAt(sql, kept)).toString('hex'),
    position: (await positionOfLeaf(sql, kept - 1)).toString(),
    time: timeNow(world),
    previous_size: kept,
    restart: {
      kept_size: kept,
      abandoned_size: head.tree_size,
      abandoned_root: head.root,
      audit_record: await recordAcceptance(within, head),
      accepted: {
        by: operatorContext(SYSTEM_TENANT).subject,
        reason,
        abandoned_generation: head.generation,
      },
    },
    consistency: [],
  }
  return signHead(unsigned, key)
}

const storeAccepted = async (sql: Sql, head: Head, restart: Restart): Promise<void> => {
  if ((await treeSize(sql)) > head.tree_size) await cutTree(sql, head.tree_size)
  await storeRestart(sql, restart)
  await storeHead(sql, head)
}

const acceptWithin = async (within: Within): Promise<Restart> => {
  const signed = await readKnown(within)
  const applied = await applySigned(within, signed)
  if (applied !== undefined) return applied
  const head = await signRestart(within, signed)
  await openHeadFile(within.headsFile).append([head])
  const restart = restartOf(head.generation, head.restart as HeadRestart)
  await storeAccepted(within.sql, head, restart)
  return restart
}

/** Throws a StartupError where there is nothing to accept, and UntrustedHead where a head is not the service's. */
export const acceptLog = (accepting: Accepting): Promise<Restart> =>
  accepting.database.transaction(async sql => {
    // Reading a long log and the file of heads takes longer than a transaction may be idle.
    await sql(`set local idle_in_transaction_session_timeout = ${IDLE_MAX_MS}`)
    await supersedeCheckpoint(sql, HEAD_SIGNING)
    return acceptWithin({ ...accepting, sql })
  }, STATEMENT_TIMEOUT_MS)
