import { timeNow } from '../lib/time.ts'
import { checkContinues, reaches, SignedEventsLost } from '../evidence/continuity.ts'
import { newestHead } from '../evidence/headAdoption.ts'
import type { HeadFile } from '../evidence/headFile.ts'
import { FIRST_GENERATION, follows, type Head, type SigningKey, signHead } from '../evidence/heads.ts'
import { storeHead, storeKey } from '../evidence/headStore.ts'
import { newestLeaves } from '../evidence/leaves.ts'
import type { Frontier } from '../evidence/merkle.ts'
import { type Leaf, leafOf } from '../evidence/record.ts'
import { HEAD_SIGNING, consistencyProof, growthFrom, growthOf, loadFrontier, rootAt } from '../evidence/tree.ts'
import { logIn } from '../logIdentity/logIdentity.ts'
import { acquireCheckpoint, fenceCheckpoint, FIRST_PARAMETER, moveCheckpointWith } from '../feeds/checkpoints.ts'
import { type Feed, type FeedDependencies, type Run, UNHURRIED_GATHER_MS } from '../feeds/feedLoop.ts'
import { type PreparedEvents, preparedEvents } from '../feeds/preparedEvents.ts'

/**
 * The process that signs the log: each event becomes a leaf of the tree in Postgres, and while there are new leaves a head is
 * signed every few seconds. It runs beside the writes and never holds them up; one process at a time has its lease.
 *
 *   signed      the leaves of a batch, their nodes and the checkpoint are written by one statement
 *   published   the head of the tree is on the disk in the file of heads, and then in Postgres
 *
 * The tree is a function of the log, so a process that was replaced while it slept can publish no head that another
 * one contradicts. A process that was killed between the file and Postgres finds its head in the file at the next start.
 * A log that has lost signed events stops the process (SignedEventsLost) until an operator accepts it.
 */

/** The leaves that are looked for in the log, newest first: the newest may have been removed by a setting of their streams. */
const CHECKED_LEAVES = 20

export type SigningProgress = {
  /** Called after each batch and after each head: the leaves that no head covers yet, and the time of the newest head. */
  readonly progressed: (unsigned: number, headAtMs: number | undefined) => void
  /** Called at the end of a run: from now on the figures of another process may be true. */
  readonly ended: () => void
}

export type SigningDependencies = SigningProgress &
  Pick<FeedDependencies, 'database' | 'store' | 'world'> & {
    readonly headFile: HeadFile
    /** Rejects where no key is configured. */
    readonly signingKey: () => Promise<SigningKey>
    /** The least time between two heads: EVIDENCE_HEADS_EVERY, 10 s by default. */
    readonly everyMs: number
  }

/** The state of a run. */
type Tree = {
  frontier: Frontier
  /** The position of the last leaf. */
  position: bigint
  /** The newest head, which the tree has to agree with. */
  head: Head | undefined
  /** Whether the tree was compared with that head. */
  isCompared: boolean
  wake: PromiseWithResolvers<void>
}

type Opened = {
  readonly key: SigningKey
  readonly log: string
  readonly epoch: bigint
  readonly tree: Tree
  readonly signal: AbortSignal
}

const open = async (dependencies: SigningDependencies, epoch: bigint, signal: AbortSignal): Promise<Opened> => {
  const { database, store, world, headFile, signingKey } = dependencies
  const { sql } = database
  const key = await signingKey()
  await acquireCheckpoint(sql, HEAD_SIGNING, epoch)
  await storeKey(sql, key)
  const head = await newestHead(sql, headFile, key)
  const leaves = await newestLeaves(sql, CHECKED_LEAVES)
  await checkContinues({ store, sql, world }, leaves)
  const frontier = await loadFrontier(sql)
  const log = (await logIn(store)) ?? ''
  // An acceptance may have cut the tree while it was read.
  await fenceCheckpoint(HEAD_SIGNING, epoch)(sql)
  const position = leaves[0]?.position ?? 0n
  const tree = { frontier, position, head, isCompared: false, wake: Promise.withResolvers<void>() }
  return { key, log, epoch, tree, signal }
}

/** Compares the tree with the newest head when it is reached: the tables may be older. Throws SignedEventsLost. */
const agreesWithHead = async (dependencies: SigningDependencies, tree: Tree): Promise<boolean> => {
  const { database, store, world } = dependencies
  const { head, frontier, position } = tree
  if (head === undefined || tree.isCompared) return true
  if (frontier.size >= head.tree_size) {
    const root = (await rootAt(database.sql, head.tree_size)).toString('hex')
    if (root !== head.root)
      throw new SignedEventsLost(`The log differs from the head of ${head.tree_size} events, signed at ${head.time}.`)
    tree.isCompared = true
    return true
  }
  const signedUpTo = BigInt(head.position)
  if (position >= signedUpTo || !(await reaches(store, signedUpTo, world)))
    throw new SignedEventsLost(
      `The log has ${frontier.size} events up to position ${await store.head()}, and the head signed at ${head.time} has ${head.tree_size} up to position ${head.position}.`,
    )
  return false
}

const nextHead = async ({ database: { sql }, world }: SigningDependencies, { key, log, tree }: Opened) => {
  const { frontier, position, head } = tree
  const previous = head?.tree_size ?? 0
  const unsigned = {
    v: 1 as const,
    log,
    generation: head?.generation ?? FIRST_GENERATION,
    tree_size: frontier.size,
    root: frontier.root().toString('hex'),
    position: position.toString(),
    time: timeNow(world),
    previous_size: previous,
    consistency: (await consistencyProof(sql, previous, frontier.size)).map(hash => hash.toString('hex')),
  }
  return signHead(unsigned, key)
}

/** The two halves of a run end after each other: the later one reports nothing more. */
const report = ({ progressed }: SigningProgress, { tree: { frontier, head }, signal }: Opened): void => {
  if (!signal.aborted) progressed(frontier.size - (head?.tree_size ?? 0), head && Date.parse(head.time))
}

/** To the file, then to Postgres; the checkpoint's lock holds back an acceptance. Throws if the file ends differently. */
const appendHead = ({ database, headFile, world }: SigningDependencies, { epoch, tree }: Opened, head: Head) =>
  database.transaction(async sql => {
    await fenceCheckpoint(HEAD_SIGNING, epoch)(sql)
    const last = await headFile.last()
    if (last?.signature !== tree.head?.signature)
      throw new Error(
        `The file ${headFile.path} does not end with the newest head any more: it was changed or removed.`,
      )
    // The proof is made from the tables, and the roots from memory: a head that a reader would refuse must not be published.
    if (last !== undefined && !follows(last, head))
      throw new Error(
        `The head of ${head.tree_size} events does not follow the last one, of ${last.tree_size} events: the tree in Postgres was changed.`,
      )
    await headFile.append([head])
    world.crashPoint('after_head_file')
    await storeHead(sql, head)
  })

/** Signs a head over all leaves, if there are new ones. */
const publish = async (dependencies: SigningDependencies, opened: Opened): Promise<void> => {
  const { database, store, world } = dependencies
  const { tree } = opened
  if (!(await agreesWithHead(dependencies, tree)) || tree.frontier.size <= (tree.head?.tree_size ?? 0)) return
  const { sql } = database
  await checkContinues({ store, sql, world }, await newestLeaves(sql, CHECKED_LEAVES))
  const head = await nextHead(dependencies, opened)
  world.crashPoint('before_head')
  await appendHead(dependencies, opened, head)
  tree.head = head
  tree.isCompared = true
  report(dependencies, opened)
}

const GROWTH = growthFrom(FIRST_PARAMETER)

const processBatchOf =
  (
    dependencies: SigningDependencies,
    opened: Opened,
    { resultOf, forget }: PreparedEvents<Leaf>,
  ): Run['processBatch'] =>
  async (events, position) => {
    const { epoch, tree } = opened
    const { database, world } = dependencies
    const leaves = events.map(resultOf)
    const { next, values } = growthOf(tree.frontier, leaves)
    await moveCheckpointWith(database.sql, { name: HEAD_SIGNING, position, epoch }, GROWTH, values)
    world.crashPoint('after_leaves')
    forget(events)
    tree.frontier = next
    tree.position = leaves.at(-1)?.position ?? tree.position
    if (leaves.length === 0) return
    report(dependencies, opened)
    tree.wake.resolve()
  }

/** Resolves at the next leaf, or at the signal. */
const untilLeaves = async (tree: Tree, signal: AbortSignal): Promise<void> => {
  const stop = (): void => tree.wake.resolve()
  signal.addEventListener('abort', stop, { once: true })
  if (!signal.aborted) await tree.wake.promise
  signal.removeEventListener('abort', stop)
  tree.wake = Promise.withResolvers()
}

/** Publishes a head when there are new leaves, and waits at least `everyMs` between two. */
const publishing = async (dependencies: SigningDependencies, opened: Opened): Promise<void> => {
  const { tree, signal } = opened
  const { world, everyMs } = dependencies
  report(dependencies, opened)
  // A tree that is behind the head is compared at once too: a restored log may get no new events for long.
  if (tree.frontier.size !== (tree.head?.tree_size ?? 0)) tree.wake.resolve()
  while (!signal.aborted) {
    await untilLeaves(tree, signal)
    const sinceHeadMs = world.now() - (tree.head ? Date.parse(tree.head.time) : 0)
    // The clock may have been set back since the last head.
    await world.sleep(Math.min(everyMs, Math.max(0, everyMs - sinceHeadMs)), signal)
    if (!signal.aborted) await publish(dependencies, opened)
  }
}

export const headSigningFeed = (dependencies: SigningDependencies): Feed => ({
  name: HEAD_SIGNING,
  withBytes: true,
  // Heads are signed every few seconds.
  gatherMs: UNHURRIED_GATHER_MS,
  beginRun: async (epoch, signal) => {
    const opened = await open(dependencies, epoch, signal)
    signal.addEventListener('abort', dependencies.ended, { once: true })
    const { frontier, position } = opened.tree
    // Hashed as they arrive: to hash the events of a whole batch at once would hold up the requests of this process.
    const leaves = preparedEvents(leafOf)
    return {
      after: frontier.size === 0 ? 'start' : position,
      processBatch: processBatchOf(dependencies, opened, leaves),
      prepare: leaves.prepare,
      background: () => publishing(dependencies, opened),
    }
  },
})
