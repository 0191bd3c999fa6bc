import { SECOND_MS } from '../lib/time.ts'
import type { Ledger } from '../commands/commandHandler.ts'
import { FACTS } from '../commands/manifests.ts'
import { HEAD_SIGNING } from '../evidence/tree.ts'
import { checkpointPositions, positionOf } from '../feeds/checkpoints.ts'
import { type Followed, FOLLOWED_READ_MODELS, type Lag, lagsOf } from '../feeds/lag.ts'
import { PUBLISHED_EVENTS, PUBLISHER } from '../feeds/publisher.ts'
import { longestStuck } from '../feeds/subscriptionCheckpoints.ts'
import { observe, type Sample } from '../lib/metrics.ts'
import type { Database } from '../ports.ts'
import { NAME as EXPORTS } from '../processes/exports/exports.ts'
import { fulfilment } from '../processes/fulfilment.ts'
import { NAME as MANIFESTS, overdueMs } from '../processes/manifests.ts'
import { paymentRecovery } from '../processes/paymentRecovery.ts'
import { NAME as SUBSCRIPTIONS } from '../processes/subscriptions/permissionMonitor.ts'
import { cachedFor } from './health.ts'

export type LagMetricsOptions = {
  readonly database: Database
  readonly ledger: Ledger
  readonly signs: boolean
  readonly manifestEveryMs: number
}

/** The log is read for a feed that is behind, so it is asked at most once in this time. */
const CACHED_MS = 5_000
/** Those that have a checkpoint: the publisher has none without a broker. */
const followedFeeds = (
  { ledger, signs }: LagMetricsOptions,
  positions: ReadonlyMap<string, bigint>,
): readonly Followed[] => {
  const feeds = [
    ...FOLLOWED_READ_MODELS,
    { name: PUBLISHER, ...PUBLISHED_EVENTS },
    ...[paymentRecovery(ledger), fulfilment(ledger)].map(({ name, categories }) => ({ name, categories })),
    { name: EXPORTS, categories: ['operation'] },
    { name: MANIFESTS, categories: ['manifest'] },
    { name: SUBSCRIPTIONS, categories: ['subscription'] },
    ...(signs ? [{ name: HEAD_SIGNING }] : []),
  ]
  return feeds.filter(({ name }) => positions.has(name)).map(feed => ({ ...feed, position: positions.get(feed.name) }))
}

/** These do more than to follow the log: they are late by the work that is due, too. */
const secondsOfWork = async ({ database, ledger, manifestEveryMs }: LagMetricsOptions) =>
  new Map([
    [MANIFESTS, (await overdueMs({ database, ledger, everyMs: manifestEveryMs })) / SECOND_MS],
    [SUBSCRIPTIONS, await longestStuck(database.sql, await positionOf(database.sql, FACTS))],
  ])

const readLags = async (options: LagMetricsOptions): Promise<ReadonlyMap<string, Lag>> => {
  const { database, ledger } = options
  const feeds = followedFeeds(options, await checkpointPositions(database.sql))
  const lags = await lagsOf(ledger.store, feeds, ledger.world.now())
  const ofWork = await secondsOfWork(options)
  return new Map(
    [...lags].map(([name, lag]) => [name, { ...lag, seconds: Math.max(lag.seconds, ofWork.get(name) ?? 0) }]),
  )
}

const samplesOf = (lags: ReadonlyMap<string, Lag>, unit: keyof Lag): readonly Sample[] =>
  [...lags].map(([feed, lag]) => ({ labels: { feed }, value: lag[unit] }))

/** Returns the function that removes the metrics. They are absent while the event store or Postgres does not answer. */
export const observeLag = (options: LagMetricsOptions): (() => void) => {
  const { world } = options.ledger
  const read = cachedFor(
    () => readLags(options),
    () => world.monotonicMs(),
    CACHED_MS,
  )
  const samples = async (unit: keyof Lag): Promise<readonly Sample[]> =>
    samplesOf(await read().catch(() => new Map<string, Lag>()), unit)
  const removals = [
    observe({
      name: 'ledger.feed.lag.events',
      unit: '',
      help: 'Events that the feed has not processed yet, counted up to 1000.',
      read: () => samples('events'),
    }),
    observe({
      name: 'ledger.feed.lag',
      unit: 's',
      help: 'Age of the oldest event that the feed has not processed yet, or of work of it that is overdue.',
      read: () => samples('seconds'),
    }),
  ]
  return () => {
    for (const remove of removals) remove()
  }
}
