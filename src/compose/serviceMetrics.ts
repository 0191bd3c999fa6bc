import type { Ledger } from '../commands/commandHandler.ts'
import { tenantsAbove } from '../commands/quotas/tenantBytes.ts'
import type { FeedState } from '../feeds/feedLoop.ts'
import { observe, type Sample } from '../lib/metrics.ts'
import type { Database } from '../ports.ts'
import { answers, cachedFor, wordOf } from './health.ts'

export type ServiceMetricsOptions = {
  readonly database: Database
  readonly ledger: Pick<Ledger, 'store' | 'world'>
  /** The feeds of this process; none in a process of the API. */
  readonly feeds: () => Iterable<FeedState>
  readonly runsFeeds: boolean
  readonly bytesPerDay: number
}

/** Every word that a feed may have at /readyz, each a series of its own. A feed that is off has none: it never runs. */
const FEED_WORDS = ['waiting', 'retrying', 'catching_up', 'live', 'stopped', 'stalled'] as const

const feedSamples = (feeds: Iterable<FeedState>): readonly Sample[] =>
  [...feeds]
    .filter(({ state }) => state !== 'off')
    .flatMap(feed =>
      FEED_WORDS.map(state => ({
        labels: { feed: feed.name, state },
        value: wordOf(feed) === state ? 1 : 0,
      })),
    )

const dependencySamples = async ({ database, ledger }: ServiceMetricsOptions): Promise<readonly Sample[]> => {
  const [eventStore, postgres] = await Promise.all([
    answers(() => ledger.store.head()),
    answers(() => database.sql('select 1')),
  ])
  return [
    { labels: { dependency: 'event_store' }, value: eventStore === 'ok' ? 1 : 0 },
    { labels: { dependency: 'postgres' }, value: postgres === 'ok' ? 1 : 0 },
  ]
}

/** Deliveries by kind, because each subscription is a delivery of its own: an id is no label. */
const PARKED = `select case when delivery like 'sub\\_%' then 'subscription' else delivery end as delivery, count(*) as waiting
  from parked_facts group by 1`

const parkedSamples = async ({ database: { sql } }: ServiceMetricsOptions): Promise<readonly Sample[]> => {
  const rows = await sql<{ delivery: string; waiting: bigint }>(PARKED)
  // The metric is there when nothing waits, so an alert is not mistaken for one without data.
  const zero = rows.some(({ delivery }) => delivery === 'publisher') ? [] : [{ delivery: 'publisher', waiting: 0n }]
  return [...rows, ...zero].map(({ delivery, waiting }) => ({ labels: { delivery }, value: Number(waiting) }))
}

/** The metric names no tenant; `ledger doctor` does. */
const quotaSamples = async ({ database, bytesPerDay }: ServiceMetricsOptions): Promise<readonly Sample[]> => {
  const [largest] = await tenantsAbove(database.sql, 0)
  return [{ labels: {}, value: (largest?.bytes ?? 0) / bytesPerDay }]
}

/** Adds the metrics of this process' part of the service. Returns the function that removes them. */
export const observeService = (options: ServiceMetricsOptions): (() => void) => {
  const monotonicMs = (): number => options.ledger.world.monotonicMs()
  const removals = [
    observe({
      name: 'ledger.dependency.up',
      unit: '',
      help: '1 if the dependency answers, 0 if it does not.',
      read: cachedFor(() => dependencySamples(options), monotonicMs),
    }),
  ]
  if (options.runsFeeds)
    removals.push(
      observe({
        name: 'ledger.feed.state',
        unit: '',
        help: '1 for the state that the feed has, 0 for the others.',
        read: () => feedSamples(options.feeds()),
      }),
      observe({
        name: 'ledger.dead.letters',
        unit: '',
        help: 'Events that wait for an operator, by delivery.',
        read: cachedFor(() => parkedSamples(options), monotonicMs),
      }),
      observe({
        name: 'ledger.tenant.bytes.used',
        unit: '1',
        help: 'The largest part of TENANT_BYTES_PER_DAY that any tenant has used today; ledger doctor names the tenants.',
        read: cachedFor(() => quotaSamples(options), monotonicMs),
      }),
    )
  return () => {
    for (const remove of removals) remove()
  }
}
