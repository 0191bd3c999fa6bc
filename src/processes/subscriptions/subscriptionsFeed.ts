import { partsOf } from '../../../streams/aggregate.ts'
import { moveCheckpoint, positionOf, EpochSuperseded, acquireCheckpoint } from '../../feeds/checkpoints.ts'
import { firstPositionsOfKeys } from '../../feeds/deadLetters.ts'
import type { Feed } from '../../feeds/feedLoop.ts'
import { type SubscriptionDelivery, deliveriesUpTo } from '../../feeds/subscriptionCheckpoints.ts'
import { AT_ONCE_MS, createTimer, type Timer } from '../../feeds/timer.ts'
import { type StoredEvent, Unavailable } from '../../ports.ts'
import { createDeliveries, type Deliveries } from './reconciliation.ts'
import type { SubscriptionDependencies } from './dependencies.ts'
import { createTenantRoundRobin, type RoundRobin } from '../fairScheduling.ts'
import { NAME } from './permissionMonitor.ts'

/**
 * The feed that delivers facts to the topics of customers' subscriptions. One loop serves all of them: each round reads
 * in one query which subscriptions have work, and reconciles each with its row, fairly by tenant (fairScheduling.ts).
 *
 *   reconciliation.ts      reconciles a subscription with its row: topics, rights, delivery, dead letters
 *   delivery.ts            sends the facts of one subscription, batch by batch
 *   permissionMonitor.ts   stops subscriptions whose owner lost the permission
 *   topicProvisioning.ts   creates and deletes topics, grants and revokes rights; topicWork.ts runs that beside the loop
 *   deadLetterTopics.ts    announces dead letters on the dead letter topics
 *
 * The facts come from the projection that GET /events reads, up to its checkpoint. The subscriptions come from their
 * read model; the log is followed only to find rows that are out of date, so a subscription that was just paused
 * is not delivered because the projection is late.
 *
 * A round begins when the projector of this process has changed a row, when a permission has to be checked again, or
 * when a subscription that failed is due. While another process has the projector, rounds follow each other after
 * ROUND_MS.
 */

const READ_MODEL = 'subscriptions_v1'
/** The least pause between two rounds of which the first has left nothing to do. */
const ROUND_MS = 200
/** The rows of a round are used for this time at most, because a pause must stop the delivery within a second. */
const FRESH_MS = 400
/** The pause of a subscription after a failure. The others continue. */
const FAILURE_PAUSE_MS = 5_000
/** After this number of failures of the broker in a row the run ends, and the next one begins without these pauses. */
const BROKER_FAILURES_MAX = 2

/** The state of one run, which its rounds share. */
type RunState = {
  readonly dependencies: SubscriptionDependencies
  /** The newest event of each subscription whose row does not have it yet. */
  readonly newest: Map<string, Pick<StoredEvent, 'revision' | 'position'>>
  /** The end of the pause of each subscription that failed. */
  readonly pausedUntilMs: Map<string, number>
  readonly roundRobin: RoundRobin<SubscriptionDelivery>
  /** Ends the pause between two rounds. */
  readonly timer: Timer
}

/** Those whose row lacks their newest event. One that the read model has passed and not parked was discarded. */
const outOfDate = async (
  { newest, dependencies: { database } }: RunState,
  subscriptions: readonly SubscriptionDelivery[],
): Promise<ReadonlySet<string>> => {
  for (const { id, revision } of subscriptions) if ((newest.get(id)?.revision ?? 0n) <= revision) newest.delete(id)
  const late = subscriptions.filter(({ id }) => newest.has(id))
  if (late.length === 0) return new Set()
  const projectedUpTo = await positionOf(database.sql, READ_MODEL)
  const parked = await firstPositionsOfKeys(database.sql, READ_MODEL)
  for (const { id } of late) if ((newest.get(id)?.position ?? 0n) <= projectedUpTo && !parked.has(id)) newest.delete(id)
  return new Set(newest.keys())
}

const isBrokerDown = (error: unknown): boolean => error instanceof Unavailable && error.dependency === 'fact bus'

/** Whether the failure concerns one subscription: an unavailable database and a newer epoch concern all of them. */
const concernsOne = (error: unknown): boolean =>
  !(error instanceof EpochSuperseded) && !(error instanceof Unavailable && error.dependency === 'database')

/** Reconciles one subscription, and pauses it after a failure of its own. Resolves to whether there may be more. */
const reconcilerOf = ({ dependencies, pausedUntilMs, roundRobin }: RunState, deliveries: Deliveries) => {
  const { ledger, logger } = dependencies
  let brokerFailures = 0
  return async (subscription: SubscriptionDelivery, projectedUpTo: bigint): Promise<boolean> => {
    roundRobin.hadTurn(subscription)
    try {
      const more = await deliveries.reconcile(subscription, projectedUpTo)
      brokerFailures = 0
      pausedUntilMs.delete(subscription.id)
      return more
    } catch (error) {
      if (!concernsOne(error)) throw error
      pausedUntilMs.set(subscription.id, ledger.world.monotonicMs() + FAILURE_PAUSE_MS)
      logger.warn({ subscription: subscription.id, error }, 'cannot deliver facts to a subscription; retrying')
      await deliveries.closeAfterFailure(subscription.id)
      if (isBrokerDown(error) && ++brokerFailures >= BROKER_FAILURES_MAX) throw error
      return false
    }
  }
}

/** Sets the time of the next round, which begins earlier if anything changes. */
const setNextRound = (
  { dependencies, pausedUntilMs, timer }: RunState,
  deliveries: Deliveries,
  subscriptions: readonly SubscriptionDelivery[],
): void => {
  if (dependencies.projector?.isHere() !== true) timer.setAt(AT_ONCE_MS)
  for (const { id } of subscriptions) timer.setAt(pausedUntilMs.get(id) ?? deliveries.nextDueMs(id))
}

const deliverAll = async (state: RunState, deliveries: Deliveries, signal: AbortSignal): Promise<void> => {
  const { dependencies, pausedUntilMs, roundRobin, timer } = state
  const { database, ledger } = dependencies
  const reconcile = reconcilerOf(state, deliveries)

  /** Resolves to whether there may be more to do at once. */
  const round = async (): Promise<boolean> => {
    const readAtMs = ledger.world.monotonicMs()
    const projectedUpTo = await positionOf(database.sql, 'facts_v1')
    let more = false
    deliveries.beforeRowsAreRead()
    const all = await deliveriesUpTo(database.sql, projectedUpTo)
    const late = await outOfDate(state, all)
    for (const subscription of roundRobin.inOrder(all)) {
      if (signal.aborted) return false
      if (ledger.world.monotonicMs() - readAtMs > FRESH_MS) return true
      if (late.has(subscription.id) || (pausedUntilMs.get(subscription.id) ?? 0) > ledger.world.monotonicMs()) continue
      more = (await reconcile(subscription, projectedUpTo)) || more
    }
    setNextRound(state, deliveries, all)
    return more
  }

  while (!signal.aborted) {
    const more = await round()
    if (!more) await timer.wait(signal, ROUND_MS)
  }
}

export const subscriptionsFeed = (dependencies: SubscriptionDependencies): Feed => {
  const { sql } = dependencies.database
  // Of all runs: the failures that end a run may be those of topics that are gone.
  const failed = new Set<string>()
  return {
    name: NAME,
    categories: ['subscription'],
    beginRun: async (epoch, signal) => {
      const state: RunState = {
        dependencies,
        newest: new Map(),
        pausedUntilMs: new Map(),
        roundRobin: createTenantRoundRobin(),
        timer: createTimer(dependencies.ledger.world),
      }
      const changed = (): void => state.timer.setAt(AT_ONCE_MS)
      return {
        after: await acquireCheckpoint(sql, NAME, epoch),
        processBatch: async (events, position) => {
          // Not decoded: an event that this build cannot decode concerns its subscription alone, whose read model parks
          // it.
          for (const { stream, revision, position: at } of events)
            state.newest.set(partsOf(stream).id, { revision, position: at })
          changed()
          await moveCheckpoint(sql, [NAME], position, epoch)
        },
        background: async () => {
          const deliveries = createDeliveries(dependencies, epoch, { failed, onTopicWorkEnded: changed })
          const endListening = dependencies.projector?.listen(changed)
          try {
            await deliverAll(state, deliveries, signal)
          } finally {
            endListening?.()
            await deliveries.closeAll()
          }
        },
      }
    },
  }
}
