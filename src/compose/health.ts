import type { Ledger } from '../commands/handle.ts'
import type { FeedState } from '../feeds/subscriptionLoop.ts'
import type { HealthReport } from '../http/endpoints.ts'
import type { Database } from '../ports.ts'
import type { FeedStates } from './feeds.ts'

/**
 * How this process is, in words that are the same for every cause: anybody may read them. The reasons are in the log and
 * in the table feed_errors, for `ledger doctor`.
 */

/** However many ask, the parts are asked once in this time. */
const KEPT_MS = 1_000
const PART_DEADLINE_MS = 2_500

export type HealthDependencies = {
  readonly database: Database
  readonly ledger: Ledger
  readonly feeds: Pick<FeedStates, 'values'>
}

const answers = async (work: () => Promise<unknown>): Promise<'ok' | 'unavailable'> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('No answer in time.')), PART_DEADLINE_MS)
  })
  try {
    await Promise.race([work(), late])
    return 'ok'
  } catch {
    return 'unavailable'
  } finally {
    clearTimeout(timer)
  }
}

/** `retrying`: a part that the feed needs does not answer; it goes on by itself. */
const wordOf = ({ state, error }: FeedState): string =>
  state === 'waiting' && error !== undefined ? 'retrying' : state

/** A broker that is down is no reason to send callers elsewhere: the API does not need it, and no instance has another. */
const isIll = ({ state, part }: FeedState): boolean =>
  state === 'stopped' || (state === 'stalled' && part !== 'fact bus')

export const healthOf = async ({ database, ledger, feeds }: HealthDependencies): Promise<HealthReport> => {
  const [event_store, postgres] = await Promise.all([
    answers(() => ledger.store.head()),
    answers(() => database.sql('select 1')),
  ])
  const words = [...feeds.values()].map(feed => [feed.name, wordOf(feed)] as const)
  const ready = event_store === 'ok' && postgres === 'ok' && !feeds.values().some(isIll)
  return { ready, checks: { event_store, postgres, ...Object.fromEntries(words) } }
}

/** One report for all who ask within a second. */
export const keptFor = <T>(make: () => Promise<T>, monotonicMs: () => number, keptMs = KEPT_MS): (() => Promise<T>) => {
  let kept: { readonly report: Promise<T>; readonly untilMs: number } | undefined
  return () => {
    if (kept === undefined || monotonicMs() >= kept.untilMs) {
      const report = make()
      kept = { report, untilMs: Number.POSITIVE_INFINITY }
      const begun = kept
      void report
        .catch(() => undefined)
        .then(() => {
          if (kept === begun) kept = { report, untilMs: monotonicMs() + keptMs }
        })
    }
    return kept.report
  }
}
