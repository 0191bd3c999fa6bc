import { accessEntity } from '../../../src/commands/entities.ts'
import { handle, type Ledger } from '../../../src/commands/commandHandler.ts'
import { derivedId } from '../../../src/commands/identifiers.ts'
import { reaches, removalOf } from '../../../src/evidence/continuity.ts'
import { openHeadFile } from '../../../src/evidence/headFile.ts'
import { type Head, isLater } from '../../../src/evidence/heads.ts'
import { lastHead, lastRestart, type Restart, storeRestart } from '../../../src/evidence/headStore.ts'
import { leavesBelow, newestLeaves } from '../../../src/evidence/leaves.ts'
import { isAsSealed } from '../../../src/evidence/liveComparison.ts'
import { eventsUpTo, type Pair, pairsOf } from '../../../src/evidence/pairing.ts'
import { cutTree, rootAt, treeSize } from '../../../src/evidence/tree.ts'
import type { Database, World } from '../../../src/ports.ts'
import { StartupError } from '../../../src/startupError.ts'
import { SYSTEM_TENANT } from '../../../streams/envelope.ts'
import { streamOf } from '../../../streams/aggregate.ts'
import { operatorContext } from '../operatorContext.ts'

/**
 * Accepts a log that has lost sealed events: the tree is cut to the leaves that the log still has, and a new generation of heads
 * begins. The acceptance is an audit record, which is stored first; its id follows from the head that is abandoned, so that a
 * command that was killed between record and tree finds its own record when it is repeated.
 */

export type Accepting = {
  readonly ledger: Ledger
  readonly database: Database
  readonly headsFile: string
  /** Why the loss is accepted, for the audit record. */
  readonly reason: string
  readonly world: Pick<World, 'sleep'>
  readonly signal: AbortSignal
}

/** A comparison of all events would end at the first difference. */
const isKept = async ({ store }: Ledger, pair: Pair): Promise<boolean> =>
  isAsSealed(pair) ||
  (pair.leaf !== undefined && pair.event === undefined && (await removalOf(store, pair.leaf)) !== undefined)

/** The number of leaves, from the first on, that are in the log as they were sealed. */
const keptSize = async ({ ledger, database: { sql }, signal }: Accepting, size: number): Promise<number> => {
  const [newest] = await newestLeaves(sql, 1)
  let kept = 0
  const events = eventsUpTo(ledger.store, newest?.position ?? 0n, signal)
  for await (const pair of pairsOf(leavesBelow(sql, size), events)) {
    if (!(await isKept(ledger, pair))) break
    kept += 1
  }
  return kept
}

/** The newest head, from the database or from the file. */
const newestHead = async ({ database: { sql }, headsFile }: Accepting): Promise<Head | undefined> => {
  const [stored, written] = [await lastHead(sql), await openHeadFile(headsFile).last()]
  return written && (stored === undefined || isLater(written, stored)) ? written : stored
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

/** Throws a StartupError where the log has lost nothing. */
export const acceptLog = async (accepting: Accepting): Promise<Restart> => {
  const { sql } = accepting.database
  const head = await newestHead(accepting)
  if (head === undefined) throw new StartupError('No head was signed yet, so that there is nothing to accept.')
  const size = await treeSize(sql)
  const [newest] = await newestLeaves(sql, 1)
  // A follower that is behind would look like a log that was cut.
  if (newest !== undefined) await reaches(accepting.ledger.store, newest.position, accepting.world)
  const kept = await keptSize(accepting, size)
  const isWhole =
    kept === size && size >= head.tree_size && (await rootAt(sql, head.tree_size)).toString('hex') === head.root
  if (isWhole)
    throw new StartupError('The log has every sealed event as it was sealed, so that there is nothing to accept.')
  const restart: Restart = {
    generation: Math.max(head.generation, (await lastRestart(sql))?.generation ?? 1) + 1,
    kept_size: kept,
    abandoned_size: head.tree_size,
    abandoned_root: head.root,
    audit_record: await recordAcceptance(accepting, head),
    accepted_by: operatorContext(SYSTEM_TENANT).subject,
  }
  await accepting.database.transaction(async transaction => {
    await transaction('lock table evidence_leaves in exclusive mode')
    await cutTree(transaction, kept)
    await storeRestart(transaction, restart)
  })
  return restart
}
