import {
  type Database,
  type EventStore,
  type FeedItem,
  type StoredEvent,
  type SubscribeOptions,
  Unavailable,
  type World,
} from '../ports.ts'
import { batches, summaryOf } from './batches.ts'
import { type BatchLimit, createBatchLimit } from './batchLimit.ts'
import { inBatchTrace } from './batchTrace.ts'
import { type ResumePosition, EpochSuperseded } from './checkpoints.ts'
import { createProgress, type FeedState, type Progress } from './feedProgress.ts'

export type { FeedState } from './feedProgress.ts'

/**
 * The loop that runs every feed, a subscriber of the log. Feeds that share a lease run in one process at a time, and each
 * feed is in one of four states:
 *
 *   waiting      the feed does not have the lease, or a dependency did not answer
 *   catching_up  the feed processes batches from its checkpoint
 *   live         the feed has processed the last event of the log, and processes new ones as they are appended
 *   stopped      a batch failed for another reason than a dependency: the feed tries again after a pause
 *
 *   waiting ── the lease is acquired: a run begins ──▶ catching_up ── the store reports the end of the log ──▶ live
 *      ▲                                                   │                                                    │
 *      ├──────── a dependency did not answer ──────────────┴────────────────────────────────────────────────────┤
 *      └── after a pause ── stopped ◀── anything else failed ───────────────────────────────────────────────────┘
 *
 * A feed that has work and processes no batch for 30 s is reported as `stalled` instead of its state (feedProgress.ts), until
 * the next batch. A feed that is live, or whose lease another process has, has no work.
 *
 * A run has two halves: the loop, which processes batches from the checkpoint on, and the background work. The end of one
 * half ends the other, and the run has ended when both have: only then may the next run begin. All state of a run (its
 * epoch, its open tasks) is in the object that `beginRun` returns, so two runs share nothing.
 */

export type Feed = Pick<SubscribeOptions, 'categories' | 'excludeTypes' | 'withBytes'> & {
  readonly name: string
  /** The events of a batch while the feed catches up; FEED_BATCH_MAX when absent. */
  readonly batchMax?: number
  /** The pause after a batch that was not full, once the feed is live; GATHER_MS when absent. */
  readonly gatherMs?: number
  /** Must succeed before a run begins: creates topics, for example. */
  readonly prepare?: () => Promise<void>
  /** Acquires the checkpoint for this epoch. Throws EpochSuperseded in an old epoch. The signal aborts when the run must end. */
  readonly beginRun: (epoch: bigint, signal: AbortSignal) => Promise<Run>
}

/** One run of a feed, with all of its state. */
export type Run = {
  /** The position to continue after. */
  readonly after: ResumePosition
  /**
   * Processes a batch and moves the checkpoint, both or neither. A batch may come twice, never with a gap before it. An
   * error other than Unavailable stops the feed.
   */
  readonly processBatch: (events: readonly StoredEvent[], position: bigint, readAhead?: () => void) => Promise<void>
  /** The next events are read when the run calls `readAhead`, or after the batch: reading delays its statements. */
  readonly readsLater?: true
  /** Called for each event when it arrives, while an earlier batch may still be processed. Does not throw. */
  readonly prepare?: (event: StoredEvent) => void
  /** Called when the feed is live, again after each batch. Does not throw. */
  readonly caughtUp?: () => void
  /** Work beside the loop, until the signal. Settles when none of it is in flight any more. */
  readonly background?: () => Promise<void>
}

export type FeedDependencies = {
  readonly store: EventStore
  readonly database: Database
  readonly world: World
  readonly report: (state: FeedState) => void
}

const FEED_BATCH_MAX = 2_000
/** More of them would be one long turn of the event loop, while requests wait. A feed that catches up takes whole batches. */
const LIVE_BATCH_MAX = 500
/** The pause of a live feed after a batch that was not full: one event costs nearly as much as a hundred. */
const GATHER_MS = 50
/** The pause of feeds whose results no reader waits for. */
export const UNHURRIED_GATHER_MS = 500
/** A stopped feed tries again from its checkpoint: the cause may have been repaired. */
const STOPPED_RETRY_MS = 5_000
export const UNAVAILABLE_RETRY_MS = 250

/**
 * Runs the feeds that share the lease `name`, until the signal. When the lease is lost, this process waits for it again
 * at once: a feed whose run ends late begins its next one late, and delays no other.
 */
export const runFeeds = async (
  name: string,
  feeds: readonly Feed[],
  dependencies: FeedDependencies,
  stop: AbortSignal,
): Promise<void> => {
  const { database, world, report } = dependencies
  const all = feeds.map(feed => ({
    ...{ feed, dependencies, progress: createProgress(feed.name, world, report), limit: createBatchLimit() },
  }))
  const leaseAttempted = (error: unknown): void => {
    for (const { progress } of all) progress.leaseAttempted(error)
  }
  const reporting = all.map(({ progress }) => progress.reportWhenStalled(stop))
  let running = all.map(() => Promise.resolve())
  const work = async ({ epoch, signal }: Lease): Promise<void> => {
    running = all.map(async (supervised, index) => {
      await running[index]
      await keepRunning(supervised, epoch, signal)
    })
    await Promise.race([Promise.all(running), lossOf(signal, stop)])
  }
  while (!stop.aborted) {
    for (const { progress } of all) progress.waiting()
    await database.withLease(name, stop, work, leaseAttempted)
    await world.sleep(UNAVAILABLE_RETRY_MS, stop)
  }
  await Promise.all([...running, ...reporting])
}

/** Resolves when the lease is lost. A lease that ends because the feeds stop is kept until all of them have stopped. */
const lossOf = (signal: AbortSignal, stop: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    const ended = (): void => {
      if (!stop.aborted) resolve()
    }
    if (signal.aborted) ended()
    else signal.addEventListener('abort', ended, { once: true })
  })

const keepRunning = async (supervised: SupervisedFeed, epoch: bigint, signal: AbortSignal): Promise<void> => {
  try {
    while (!signal.aborted) {
      const pauseMs = await runAndReport(supervised, epoch, signal)
      await supervised.dependencies.world.sleep(pauseMs, signal)
    }
  } catch (error) {
    // Another process runs this feed in a newer epoch. The other feeds of the lease continue until the lease is lost, or until
    // they are replaced too.
    if (!(error instanceof EpochSuperseded)) throw error
  }
}

/** Reports the failure of the run, and resolves to the pause before the next one. Throws EpochSuperseded. */
const runAndReport = async (supervised: SupervisedFeed, epoch: bigint, signal: AbortSignal): Promise<number> => {
  try {
    await runOnce(supervised, epoch, signal)
  } catch (error) {
    // Not reported: the run had to end, and the error may be the consequence.
    if (signal.aborted) return 0
    if (error instanceof EpochSuperseded) throw error
    const isTransient = error instanceof Unavailable
    supervised.progress.failed(error, !isTransient)
    if (!isTransient) return STOPPED_RETRY_MS
  }
  return UNAVAILABLE_RETRY_MS
}

type Lease = { readonly epoch: bigint; readonly signal: AbortSignal }
type SupervisedFeed = {
  readonly feed: Feed
  readonly dependencies: FeedDependencies
  readonly progress: Progress
  /** Of all runs, since a batch that fails ends its run. */
  readonly limit: BatchLimit
}

const runOnce = async (supervised: SupervisedFeed, epoch: bigint, signal: AbortSignal): Promise<void> => {
  const { feed, progress } = supervised
  progress.hasWork()
  await feed.prepare?.()
  const halfEnded = new AbortController()
  const runSignal = AbortSignal.any([signal, halfEnded.signal])
  const failures: unknown[] = []
  /** The end of one half ends the other. The first failure is the cause; a later one may be its consequence. */
  const asHalf = (work: Promise<void>): Promise<void> =>
    work
      .catch((error: unknown) => void failures.push(error))
      .finally(() => {
        // Also for a feed that was live: if the other half does not end, the feed is reported as stalled.
        progress.hasWork()
        halfEnded.abort()
      })
  const run = await feed.beginRun(epoch, runSignal)
  await Promise.all([asHalf(follow(supervised, run, runSignal)), run.background && asHalf(run.background())])
  if (failures.length > 0) throw failures[0]
}

const subscriptionOf = ({ categories, excludeTypes, withBytes }: Feed) => ({
  ...(categories && { categories }),
  ...(excludeTypes && { excludeTypes }),
  ...(withBytes && { withBytes }),
})

/** The loop: batch by batch from the checkpoint, each finished before the next begins. */
const follow = async ({ feed, dependencies, progress, limit }: SupervisedFeed, run: Run, signal: AbortSignal) => {
  const { batchMax = FEED_BATCH_MAX, gatherMs = GATHER_MS } = feed
  const items = dependencies.store.subscribe({ after: run.after, ...subscriptionOf(feed), signal })
  let live = false
  let processedUpTo = run.after === 'start' ? 0n : run.after
  let readAhead = (): void => undefined
  const later = run.readsLater && ((resume: () => void) => void (readAhead = resume))
  const processItems = async (items: readonly FeedItem[]): Promise<void> => {
    const { events, position, caughtUp, interruption } = summaryOf(items)
    progress.hasWork()
    if (position !== undefined)
      await limited(limit, events, () =>
        inBatchTrace(feed.name, events, () => run.processBatch(events, position, readAhead)),
      )
    processedUpTo = position ?? processedUpTo
    live = (live || caughtUp) && interruption === undefined
    if (live) run.caughtUp?.()
    if (position !== undefined || caughtUp) progress.processed(processedUpTo, live)
    if (interruption !== undefined)
      progress.failed(new Unavailable('event store', { effect: 'none', cause: interruption }), false)
  }
  const arrived = (item: FeedItem): void => {
    if (item.kind === 'event') run.prepare?.(item.event)
  }
  for await (const batch of batches(items, batchMax, arrived, later)) {
    for (let from = 0, to = 0; from < batch.length; from = to) {
      to = from + limit.of(live ? LIVE_BATCH_MAX : batchMax)
      await processItems(batch.slice(from, to))
    }
    if (live && batch.length < batchMax) await dependencies.world.sleep(gatherMs, signal)
  }
}

const limited = async (limit: BatchLimit, { length }: readonly StoredEvent[], work: () => Promise<void>) => {
  try {
    await work()
    limit.succeeded(length)
  } catch (error) {
    if (error instanceof Unavailable) limit.failed(length)
    throw error
  }
}
