import type { Ledger } from '../commands/commandHandler.ts'
import type { FeedState } from '../feeds/feedLoop.ts'
import { type Lag, lagsOfReadModels } from '../feeds/lag.ts'
import type { HealthReport } from '../http/index.ts'
import type { Database } from '../ports.ts'
import { HEAD_SIGNING } from '../evidence/tree.ts'
import { within } from '../lib/time.ts'
import type { FeedStates } from './feeds.ts'
import type { Siblings } from './siblings.ts'

/** The report needs no authentication, so its words do not depend on the cause: the log and feed_errors have it. */

/** The dependencies are asked once in this time, for any number of requests. */
const CACHED_MS = 1_000
const DEPENDENCY_DEADLINE_MS = 2_500
/** The age of an event from which a read model that lacks it is reported. */
const LAGGING_AFTER_S = 30

export type HealthDependencies = {
  readonly database: Database
  readonly ledger: Ledger
  readonly feeds: Pick<FeedStates, 'values'>
  /** The lag of each read model; not reported when absent. */
  readonly lags?: () => Promise<ReadonlyMap<string, Lag>>
  /** The other processes of the service; not reported when absent. */
  readonly siblings?: Pick<Siblings, 'areAnswering'> | undefined
}

export const answers = (work: () => Promise<unknown>): Promise<'ok' | 'unavailable'> =>
  within(
    work().then(
      () => 'ok',
      () => 'unavailable',
    ),
    DEPENDENCY_DEADLINE_MS,
    () => 'unavailable',
  )

/** `retrying`: a dependency of the feed does not answer; the feed continues by itself. */
export const wordOf = ({ state, error }: FeedState): string =>
  state === 'waiting' && error !== undefined ? 'retrying' : state

/** A feed that waits for the broker is healthy: the API does without. So it does without head signing that has stopped. */
const isUnhealthy = ({ name, state, dependency }: FeedState): boolean =>
  name !== HEAD_SIGNING && (state === 'stopped' || (state === 'stalled' && dependency !== 'fact bus'))

/** Whether every read model follows the log, whoever writes it. GET by id does without, so the process stays ready. */
const readModelsWord = async (lags: NonNullable<HealthDependencies['lags']>): Promise<string> => {
  let word = 'unavailable'
  await answers(async () => {
    const isLagging = (await lags()).values().some(({ seconds }) => seconds >= LAGGING_AFTER_S)
    word = isLagging ? 'lagging' : 'ok'
  })
  return word
}

/** The process stays ready when a sibling does not answer: that one gets no connections, and is replaced. */
export const healthOf = async (dependencies: HealthDependencies): Promise<HealthReport> => {
  const { database, ledger, feeds, lags, siblings } = dependencies
  const [event_store, postgres, read_models] = await Promise.all([
    answers(() => ledger.store.head()),
    answers(() => database.sql('select 1')),
    lags && readModelsWord(lags),
  ])
  const words = [...feeds.values()].map(feed => [feed.name, wordOf(feed)] as const)
  const ready = event_store === 'ok' && postgres === 'ok' && !feeds.values().some(isUnhealthy)
  const ofReadModels = read_models === undefined ? {} : { read_models }
  const ofProcesses = siblings && { processes: siblings.areAnswering() ? 'ok' : 'not_answering' }
  return { ready, checks: { event_store, postgres, ...ofReadModels, ...ofProcesses, ...Object.fromEntries(words) } }
}

/** Caches the result of `make`; concurrent calls share one. */
export const cachedFor = <T>(
  make: () => Promise<T>,
  monotonicMs: () => number,
  cacheMs = CACHED_MS,
): (() => Promise<T>) => {
  let cached: { readonly report: Promise<T>; readonly untilMs: number } | undefined
  return () => {
    if (cached === undefined || monotonicMs() >= cached.untilMs) {
      const report = make()
      cached = { report, untilMs: Number.POSITIVE_INFINITY }
      const begun = cached
      void report
        .catch(() => undefined)
        .then(() => {
          if (cached === begun) cached = { report, untilMs: monotonicMs() + cacheMs }
        })
    }
    return cached.report
  }
}

/** The log is read where a read model is behind, so it is asked at most once in this time. */
const LAGS_CACHED_MS = 5_000

export const createHealth = (dependencies: Omit<HealthDependencies, 'lags'>): (() => Promise<HealthReport>) => {
  const { database, ledger } = dependencies
  const { store, world } = ledger
  const monotonicMs = (): number => world.monotonicMs()
  const lags = cachedFor(() => lagsOfReadModels(database.sql, store, world.now()), monotonicMs, LAGS_CACHED_MS)
  return cachedFor(() => healthOf({ ...dependencies, lags }), monotonicMs)
}
