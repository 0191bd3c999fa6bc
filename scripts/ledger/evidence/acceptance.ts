import { accessEntity } from '../../../src/commands/entities.ts'
import { handle, type Ledger } from '../../../src/commands/commandHandler.ts'
import { derivedId } from '../../../src/commands/identifiers.ts'
import { reaches, removalOf } from '../../../src/evidence/continuity.ts'
import { adoptHeads } from '../../../src/evidence/headAdoption.ts'
import { openHeadFile } from '../../../src/evidence/headFile.ts'
import { type Head, type HeadRestart, type PublicKeys, signHead, type SigningKey } from '../../../src/evidence/heads.ts'
import { lastRestart, publicKeys, type Restart, storeHead, storeRestart } from '../../../src/evidence/headStore.ts'
import { leavesBelow, newestLeaves, positionOfLeaf } from '../../../src/evidence/leaves.ts'
import { isAsSealed } from '../../../src/evidence/liveComparison.ts'
import { Frontier } from '../../../src/evidence/merkle.ts'
import { eventsUpTo, type Pair, pairsOf } from '../../../src/evidence/pairing.ts'
import { cutTree, rootAt, treeSize } from '../../../src/evidence/tree.ts'
import type { Database, World } from '../../../src/ports.ts'
import { StartupError } from '../../../src/startupError.ts'
import { SYSTEM_TENANT } from '../../../streams/envelope.ts'
import { streamOf } from '../../../streams/aggregate.ts'
import { operatorContext } from '../operatorContext.ts'
import { linesIn } from './files.ts'
import { headsOf } from './headsCheck.ts'
import { boundBy, generationsOf, type Restarts, restartsIn, unsignedOf } from './restarts.ts'
import { RootComparison } from './roots.ts'

/**
 * Accepts a log that has lost sealed events: the tree is cut to the leaves that the log still has, and a new generation of heads
 * begins, with a head that this command signs. The steps, each of which a repeated command finds done:
 *
 *   the audit record   its id follows from the head that is abandoned
 *   the signed head    in the file of heads, which no writer of the databases writes
 *   Postgres           the tree is cut, the head and the row of the restart are stored
 */

export type Accepting = {
  readonly ledger: Ledger
  readonly database: Database
  readonly headsFile: string
  /** The key of the service, which signs the acceptance. */
  readonly key: SigningKey
  /** Why the loss is accepted, for the audit record and the signed head. */
  readonly reason: string
  readonly world: Pick<World, 'sleep' | 'now'>
  readonly signal: AbortSignal
}

/** A comparison of all events would end at the first difference. */
const isKept = async ({ ledger: { store }, database: { sql }, world }: Accepting, pair: Pair): Promise<boolean> =>
  isAsSealed(pair) ||
  (pair.leaf !== undefined &&
    pair.event === undefined &&
    (await removalOf({ store, sql, world }, pair.leaf)) !== undefined)

/** Comparisons of the tree with the heads that bind it: a tree that was changed together with the log does not lead to them. */
const comparisonsWith = ({ headsFile, signal }: Accepting, { head, restarts, keys }: Known): RootComparison[] => {
  return generationsOf(head, restarts).map(generation => {
    const heads = headsOf(linesIn(headsFile, signal), generation, keys)
    return new RootComparison(boundBy(heads, restarts), headsFile)
  })
}

/** The number of leaves, from the first on, that are in the log as they were sealed, and lead to the heads. */
const keptSize = async (
  accepting: Accepting,
  comparisons: readonly RootComparison[],
  size: number,
): Promise<number> => {
  const { ledger, database, signal } = accepting
  const [newest] = await newestLeaves(database.sql, 1)
  const tree = new Frontier()
  const events = eventsUpTo(ledger.store, newest?.position ?? 0n, signal)
  for await (const pair of pairsOf(leavesBelow(database.sql, size), events)) {
    if (pair.leaf === undefined || !(await isKept(accepting, pair))) break
    tree.append(pair.leaf.hash)
    for (const one of comparisons) await one.reached(tree)
    // Leaves after the last head that agrees are as doubtful as the one that was changed.
    if (comparisons.some(one => one.firstDifferent !== undefined))
      return Math.max(...comparisons.map(({ agreedSize }) => agreedSize))
  }
  return tree.size
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
  await handle(ledger, accessEntity, id, { command, context: operatorContext(SYSTEM_TENANT), isNew: true })
  for await (const event of ledger.store.readStream(streamOf(accessEntity.aggregate, id), { limit: 1 })) return event.id
  throw new Error(`The record of the acceptance, ${id}, is not in the log.`)
}

/** The signed heads, in the file and in Postgres, after each has those of the other. */
type Known = {
  readonly head: Head
  readonly keys: PublicKeys
  readonly restarts: Restarts
  /** The generation of the newest row of a restart. */
  readonly rowGeneration: number
}

const readKnown = async ({ database: { sql }, headsFile, key, signal }: Accepting): Promise<Known> => {
  const keys = await publicKeys(sql)
  const head = await adoptHeads(sql, openHeadFile(headsFile), key)
  if (head === undefined) throw new StartupError('No head was signed yet, so that there is nothing to accept.')
  if (!keys.has(key.id))
    throw new StartupError(
      `The key ${key.id} has signed no head of this log: accept with the key of the service, EVIDENCE_SIGNING_KEY or that of its data directory.`,
    )
  const restarts = await restartsIn(linesIn(headsFile, signal), keys)
  return { head, keys, restarts, rowGeneration: (await lastRestart(sql))?.generation ?? 1 }
}

/** Whether the head is that of an acceptance that was killed before it changed Postgres. */
const isUnfinished = async ({ database: { sql } }: Accepting, { head, rowGeneration }: Known): Promise<boolean> =>
  head.generation > rowGeneration &&
  head.restart?.accepted !== undefined &&
  (await treeSize(sql)) >= head.tree_size &&
  (await rootAt(sql, head.tree_size)).toString('hex') === head.root

/** The events that are kept of the log. Throws a StartupError where it has lost nothing, and there is nothing to confirm. */
const sizeToKeep = async (accepting: Accepting, known: Known): Promise<number> => {
  const { sql } = accepting.database
  const { head, restarts, rowGeneration } = known
  const size = await treeSize(sql)
  const [newest] = await newestLeaves(sql, 1)
  // A follower that is behind would look like a log that was cut.
  if (newest !== undefined) await reaches(accepting.ledger.store, newest.position, accepting.world)
  const comparisons = comparisonsWith(accepting, known)
  try {
    const kept = await keptSize(accepting, comparisons, size)
    const isWhole = kept === size && size >= head.tree_size
    if (isWhole && unsignedOf(restarts).length === 0 && rowGeneration <= head.generation)
      throw new StartupError('The log has every sealed event as it was sealed, so that there is nothing to accept.')
    return kept
  } finally {
    for (const one of comparisons) await one.close()
  }
}

/** Signs the head with which the next generation begins. */
const signRestart = async (accepting: Accepting, known: Known): Promise<Head> => {
  const { database, reason, world, key } = accepting
  const { head, restarts } = known
  const kept = await sizeToKeep(accepting, known)
  const unsigned = {
    v: 1 as const,
    log: head.log,
    generation: head.generation + 1,
    tree_size: kept,
    root: (await rootAt(database.sql, kept)).toString('hex'),
    position: (await positionOfLeaf(database.sql, kept - 1)).toString(),
    time: new Date(world.now()).toISOString(),
    previous_size: kept,
    restart: {
      kept_size: kept,
      abandoned_size: head.tree_size,
      abandoned_root: head.root,
      audit_record: await recordAcceptance(accepting, head),
      accepted: {
        by: operatorContext(SYSTEM_TENANT).subject,
        reason,
        abandoned_generation: head.generation,
        confirms: [...unsignedOf(restarts)],
      },
    },
    consistency: [],
  }
  return signHead(unsigned, key)
}

/** Cuts the tree to the leaves that the head has, and stores it with its restart. */
const storeAccepted = ({ database }: Accepting, head: Head, restart: Restart): Promise<void> =>
  database.transaction(async sql => {
    await sql('lock table evidence_leaves in exclusive mode')
    await cutTree(sql, head.tree_size)
    await storeRestart(sql, restart)
    await storeHead(sql, head)
  })

/** Throws a StartupError where there is nothing to accept, and UntrustedHead where a head is not the service's. */
export const acceptLog = async (accepting: Accepting): Promise<Restart> => {
  const known = await readKnown(accepting)
  const isSignedAlready = await isUnfinished(accepting, known)
  const head = isSignedAlready ? known.head : await signRestart(accepting, known)
  if (!isSignedAlready) await openHeadFile(accepting.headsFile).append([head])
  const { accepted, ...of } = head.restart as HeadRestart
  const restart: Restart = { generation: head.generation, ...of, accepted_by: accepted?.by ?? '' }
  await storeAccepted(accepting, head, restart)
  return restart
}
