import { type Database, type EventStore, type FeedItem, type StoredEvent, Unavailable, type World } from '../ports.ts'
import { batches } from './batches.ts'
import { type Place, Replaced } from './checkpoints.ts'
import { createProgress, type FeedState, type Progress } from './progress.ts'

export type { FeedState } from './progress.ts'

/**
 * Feeds are the subscribers of the log. Feeds of one name run in one process at a time, and each of them is in one of
 * these states:
 *
 *   waiting ── the lock is held: a run begins ──▶ catching_up ── the store says that it was the newest ──▶ live
 *      ▲                                              │                                                     │
 *      ├──────── a dependency did not answer ─────────┴─────────────────────────────────────────────────────┤
 *      └── after a pause ── stopped ◀── anything else failed ───────────────────────────────────────────────┘
 *
 * From any of them, but for a feed that waits for its lock or has taken in all that there is, to `stalled` when it takes
 * in nothing for 30 s (progress.ts), and back with the next batch.
 *
 * A run is two halves: the loop, which takes in batches from the checkpoint on, and the work alongside it. Either of them
 * ends the other, and the run has ended when both have: only then may the next run begin. Everything that belongs to a run
 * (its epoch, the tasks that are open) is in the object that `begin` makes, so that no two runs share anything.
 */

/** What a subscriber does with the log. */
export type Feed = {
  readonly name: string
  readonly categories: readonly string[]
  /** The types of events that it has no use for. */
  readonly excludeTypes?: readonly string[]
  /** Has to succeed before a run begins: topics that must exist, say. */
  readonly prepare?: () => Promise<void>
  /**
   * Begins a run: takes the checkpoint over for this epoch. Throws Replaced in an old epoch. The signal aborts when the
   * run is to end.
   */
  readonly beginRun: (epoch: bigint, signal: AbortSignal) => Promise<Run>
}

/** One run of a feed. It holds all that is known in it, and the next run has nothing of it. */
export type Run = {
  /** Where to go on. */
  readonly after: Place
  /**
   * Takes in a batch and moves the checkpoint to `position`, both or neither. It may see a batch twice, never a gap. An
   * error other than Unavailable says that the feed cannot go on from here.
   */
  readonly processBatch: (events: readonly StoredEvent[], position: bigint) => Promise<void>
  /** Work beside the loop, until the signal. It settles when nothing of it is under way any more. */
  readonly background?: () => Promise<void>
}

export type FeedDependencies = {
  readonly store: EventStore
  readonly database: Database
  readonly world: World
  readonly report: (state: FeedState) => void
}

const BATCH_MAX = 1_000
/** A batch of one costs nearly as much as one of a hundred, so under load they gather. A lone event does not wait. */
const GATHER_MS = 50
/** A feed that cannot go on tries again from its checkpoint: the cause may have been repaired, by a newer build say. */
const STOPPED_RETRY_MS = 5_000
export const UNAVAILABLE_RETRY_MS = 250

/**
 * Runs feeds in this process, and in no other at the same time, until the signal. A turn ends early when its lock is
 * lost, with the database's session say; then this process waits for its next turn like any other.
 */
export const runFeeds = async (
  name: string,
  feeds: readonly Feed[],
  parts: FeedDependencies,
  stop: AbortSignal,
): Promise<void> => {
  const { database, world, report } = parts
  while (!stop.aborted) {
    for (const feed of feeds) report({ name: feed.name, state: 'waiting', position: 0n })
    await database.exclusively(name, stop, async ({ epoch, signal }) => {
      await Promise.all(feeds.map(feed => keepRunning(feed, parts, epoch, signal)))
    })
    await world.sleep(UNAVAILABLE_RETRY_MS, stop)
  }
}

const keepRunning = async (feed: Feed, parts: FeedDependencies, epoch: bigint, signal: AbortSignal): Promise<void> => {
  const progress = createProgress(feed.name, parts.world, parts.report)
  const ended = new AbortController()
  const watching = progress.watch(AbortSignal.any([signal, ended.signal]))
  try {
    while (!signal.aborted) {
      const pauseMs = await runOrSay({ feed, parts, progress }, epoch, signal)
      await parts.world.sleep(pauseMs, signal)
    }
  } catch (error) {
    if (!(error instanceof Replaced)) throw error
  } finally {
    ended.abort()
    await watching
  }
}

/** Says why the run ended, and how long to wait for the next. Throws Replaced. */
const runOrSay = async (running: Running, epoch: bigint, signal: AbortSignal): Promise<number> => {
  try {
    await runOnce(running, epoch, signal)
  } catch (error) {
    if (signal.aborted) return 0
    if (error instanceof Replaced) throw error
    const passing = error instanceof Unavailable
    running.progress.failed(error, !passing)
    if (!passing) return STOPPED_RETRY_MS
  }
  return UNAVAILABLE_RETRY_MS
}

type Running = { readonly feed: Feed; readonly parts: FeedDependencies; readonly progress: Progress }

const runOnce = async (running: Running, epoch: bigint, signal: AbortSignal): Promise<void> => {
  const { feed, progress } = running
  progress.busy()
  await feed.prepare?.()
  const ended = new AbortController()
  const either = AbortSignal.any([signal, ended.signal])
  const failures: unknown[] = []
  /** The other half ends with it. The first failure is the reason; a later one may only follow from the end. */
  const half = (work: Promise<void>): Promise<void> =>
    work
      .catch((error: unknown) => void failures.push(error))
      .finally(() => {
        progress.busy()
        ended.abort()
      })
  const run = await feed.beginRun(epoch, either)
  await Promise.all([half(follow(running, run, either)), run.background && half(run.background())])
  if (failures.length > 0) throw failures[0]
}

/** The one loop: from the checkpoint, batch by batch, each finished before the next begins. */
const follow = async ({ feed, parts, progress }: Running, run: Run, signal: AbortSignal): Promise<void> => {
  const { after } = run
  const { categories, excludeTypes: without } = feed
  const items = parts.store.subscribe({ after, categories, ...(without && { excludeTypes: without }), signal })
  let live = false
  let reached = after === 'start' ? 0n : after
  for await (const batch of batches(items, BATCH_MAX)) {
    const { events, position, caughtUp, interruption } = summaryOf(batch)
    progress.busy()
    if (position !== undefined) await run.processBatch(events, position)
    reached = position ?? reached
    live = (live || caughtUp) && interruption === undefined
    if (position !== undefined || caughtUp) progress.tookIn(reached, live)
    if (interruption !== undefined) progress.failed(new Unavailable('event store', 'none', interruption), false)
    if (live && batch.length < BATCH_MAX) await parts.world.sleep(GATHER_MS, signal)
  }
}

const summaryOf = (batch: readonly FeedItem[]) => {
  const events: StoredEvent[] = []
  let position: bigint | undefined
  let caughtUp = false
  let interruption: unknown
  for (const item of batch) {
    // Anything that comes after an interruption shows that it is over.
    interruption = item.kind === 'interrupted' ? item.error : undefined
    if (item.kind === 'caught_up') caughtUp = true
    if (item.kind === 'interrupted') caughtUp = false
    if (item.kind === 'event') events.push(item.event)
    if (item.kind === 'event') position = item.event.position
    if (item.kind === 'checkpoint') position = item.position
  }
  return { events, position, caughtUp, interruption }
}
