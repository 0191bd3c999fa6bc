import type { FeedState } from '../feeds/feedLoop.ts'
import { connectionFailureOf, PART_SETTINGS } from '../lib/connectionFailures.ts'
import { sentence, StartupError } from '../lib/startupError.ts'
import { storeAddressOf } from '../lib/storeAddress.ts'
import { Unavailable } from '../ports.ts'
import type { Config } from '../settings/config.ts'

/** What the terminal shows of dependencies: waits, outages and recoveries, by host and setting, without passwords. */

type Dependency = Unavailable['dependency']
export type DependencyNames = Readonly<Record<Dependency, string>>
export type Notify = (sentence: string) => void

const hostOfDatabase = (address: string): string => {
  if (/^(\/|socket:)/.test(address)) return 'a Unix socket'
  // `user@/database?host=/folder` has no host, which is no URL to the parser.
  const url = URL.parse(address.replace('@/', '@localhost/'))
  return url?.searchParams.get('host') || url?.host || 'localhost'
}

export const dependencyNames = ({
  databaseUrl,
  eventStoreUrl,
  kafka,
}: Pick<Config, 'databaseUrl' | 'eventStoreUrl' | 'kafka'>): DependencyNames => ({
  database:
    databaseUrl === undefined ? 'the embedded Postgres' : `Postgres at ${hostOfDatabase(databaseUrl)} (DATABASE_URL)`,
  'event store':
    eventStoreUrl === undefined
      ? 'the embedded event store'
      : `the event store at ${storeAddressOf(eventStoreUrl).hosts.join(',')} (EVENTSTORE_URL)`,
  'fact bus': `Kafka at ${kafka?.brokers.join(', ') ?? ''} (KAFKA_BROKERS)`,
})

const WAIT_REPORTED_AFTER_MS = 1_000

/** Reports what a start waits for, if the work takes longer than a moment. */
export const reportingWait = async <T>(name: string, notify: Notify, work: Promise<T>): Promise<T> => {
  const timer = setTimeout(() => notify(`Waiting for ${name}.`), WAIT_REPORTED_AFTER_MS)
  try {
    return await work
  } finally {
    clearTimeout(timer)
  }
}

/** The cause and the remedy. A dependency that no setting names is embedded, and has no remedy. */
export const reasonOf = (error: Unavailable, names: DependencyNames): string => {
  const { cause, remedy } = connectionFailureOf(error, PART_SETTINGS[error.dependency])
  const reason = sentence(cause)
  return names[error.dependency].endsWith(')') ? `${reason} ${remedy}` : reason
}

/** The sentence that ends a start whose dependency does not answer; other errors are returned unchanged. */
export const startRefusal = (error: unknown, names: DependencyNames): unknown =>
  error instanceof Unavailable
    ? new StartupError(`Gave up waiting for ${names[error.dependency]}: ${reasonOf(error, names)}`, error)
    : error

/** Reports each reason for which a login is refused, once: what does not answer is reported by other means. */
export const reportingRefusals = (names: DependencyNames, notify: Notify): ((error: Unavailable) => void) => {
  const reported = new Set<string>()
  return error => {
    if (connectionFailureOf(error, PART_SETTINGS[error.dependency]).kind !== 'login') return
    const reason = `Waiting for ${names[error.dependency]}: ${reasonOf(error, names)}`
    if (!reported.has(reason)) notify(reason)
    reported.add(reason)
  }
}

/** A failure that is over sooner is reported to nobody. */
const OUTAGE_REPORTED_AFTER_MS = 1_000

const capitalized = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`

/** Reports outages, failures and recoveries. Call the returned function with each state of a feed. */
export const createOutageNotices = (names: DependencyNames, notify: Notify): ((state: FeedState) => void) => {
  const feedsWithout = new Map<string, Dependency>()
  const reported = new Set<Dependency>()
  const isOut = (dependency: Dependency): boolean => feedsWithout.values().some(missing => missing === dependency)
  const reportOutage = (dependency: Dependency): void => {
    if (!isOut(dependency) || reported.has(dependency)) return
    reported.add(dependency)
    notify(`${capitalized(names[dependency])} does not answer; trying again.`)
  }
  const stopped = new Set<string>()
  const reportStop = ({ name, state, error }: FeedState): void => {
    if (state === 'live' && stopped.delete(name)) notify(`The feed ${name} continues.`)
    if (state !== 'stopped' || error === undefined || stopped.has(name)) return
    stopped.add(name)
    notify(`The feed ${name} has failed: ${sentence(error)} Trying again; see npm run -s ledger -- doctor.`)
  }
  return feed => {
    reportStop(feed)
    const { name, error, dependency } = feed
    const before = feedsWithout.get(name)
    if (error !== undefined && dependency !== undefined) {
      feedsWithout.set(name, dependency)
      if (!reported.has(dependency)) setTimeout(reportOutage, OUTAGE_REPORTED_AFTER_MS, dependency).unref()
    } else feedsWithout.delete(name)
    if (before === undefined || isOut(before) || !reported.delete(before)) return
    notify(`${capitalized(names[before])} answers again.`)
  }
}
