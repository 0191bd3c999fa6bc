import type { Ledger } from '../commands/commandHandler.ts'
import { checkpointPositions } from '../feeds/checkpoints.ts'
import { type Followed, FOLLOWED_READ_MODELS, type Lag, lagsOf } from '../feeds/lag.ts'
import { PUBLISHED_EVENTS, PUBLISHER } from '../feeds/publisher.ts'
import { observe, type Sample } from '../metrics.ts'
import type { Database } from '../ports.ts'
import { fulfilment } from '../processes/fulfilment.ts'
import { paymentRecovery } from '../processes/paymentRecovery.ts'
import { cachedFor } from './health.ts'

/** The metrics of the lag of each read model, the publisher and the process managers. */

export type LagMetricsOptions = { readonly database: Pick<Database, 'sql'>; readonly ledger: Ledger }

/** The log is read for a feed that is behind, so that it is asked at most once in this time. */
const CACHED_MS = 5_000

/** Those that have a checkpoint: the publisher has none without a broker. */
const followedFeeds = async ({ database, ledger }: LagMetricsOptions): Promise<readonly Followed[]> => {
  const positions = await checkpointPositions(database.sql)
  const known = [
    ...FOLLOWED_READ_MODELS,
    { name: PUBLISHER, ...PUBLISHED_EVENTS },
    ...[paymentRecovery(ledger), fulfilment(ledger)].map(({ name, categories }) => ({ name, categories })),
  ]
  return known.filter(({ name }) => positions.has(name)).map(feed => ({ ...feed, position: positions.get(feed.name) }))
}

const samplesOf = (lags: ReadonlyMap<string, Lag>, unit: keyof Lag): readonly Sample[] =>
  [...lags].map(([feed, lag]) => ({ labels: { feed }, value: lag[unit] }))

/** Returns the function that removes the metrics. They are absent while the event store or Postgres does not answer. */
export const observeLag = (options: LagMetricsOptions): (() => void) => {
  const { store, world } = options.ledger
  const read = cachedFor(
    async () => lagsOf(store, await followedFeeds(options), world.now()),
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
      help: 'Age of the oldest event that the feed has not processed yet.',
      read: () => samples('seconds'),
    }),
  ]
  return () => {
    for (const remove of removals) remove()
  }
}
