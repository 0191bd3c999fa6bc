import type { Config } from '../settings/config.ts'
import { joinedTexts, type Sample } from '../lib/metrics.ts'
import { within } from '../lib/time.ts'
import { DRAIN_MS } from '../settings/timeBudgets.ts'
import { type Logger, Unavailable } from '../ports.ts'
import { interrupted } from './feedStates.ts'
import type { ChildSettings, SentFeedState } from './protocol.ts'
import { type Plan, type ServiceChild, type ServiceChildOptions, startServiceChild } from './serviceChild.ts'
import { createSharedLimits } from './sharedLimits.ts'

/** Both fit into the shutdown of main.ts. An API process waits for its requests, the feeds for a batch. */
const API_STOP_MAX_MS = DRAIN_MS + 1_000
const FEEDS_STOP_MAX_MS = 2_000

/** A late child is left out of the metrics. Longer than a metric may take in a child, shorter than Prometheus waits. */
const METRICS_MAX_MS = 5_000
const REVOCATION_MAX_MS = 5_000

const metricsOf = async (children: readonly ServiceChild[]): Promise<readonly string[]> => {
  const answering = children.filter(({ current }) => current().isAnswering())
  const requests = answering.map(({ current }) =>
    within(current().call('metrics'), METRICS_MAX_MS, () => undefined).catch(() => undefined),
  )
  return (await Promise.all(requests)).filter(text => text !== undefined)
}

/** Resolves when each process refuses the token. One that does not answer in time reads the list in Postgres. */
const revokeAt = async (apis: readonly ServiceChild[], name: string): Promise<void> => {
  const revoking = apis.map(({ current }) => within(current().call('revoke', name), REVOCATION_MAX_MS, unanswered))
  const results = await Promise.allSettled(revoking)
  if (results.every(({ status }) => status === 'rejected')) unanswered()
}

const unanswered = (): never => {
  throw new Unavailable('database', { effect: 'unknown' })
}

/** One process has all feeds, since each of them runs in one process at a time; the others serve the API. */
export const plannedProcesses = ({ roles, processes }: Pick<Config, 'roles' | 'processes'>): readonly Plan[] => {
  const feeds = roles.filter(role => role !== 'api')
  const apis = Math.max(1, feeds.length > 0 ? processes - 1 : processes)
  const plans: Plan[] = Array.from({ length: apis }, (_, index) => ({ name: `api-${index + 1}`, roles: ['api'] }))
  return feeds.length > 0 ? [...plans, { name: 'feeds', roles: feeds }] : plans
}

export type ChildrenOptions = {
  readonly logger: Logger
  readonly settings: Promise<Pick<ChildSettings, 'port' | 'databaseUrl' | 'eventStoreUrl' | 'issuerPort'>>
  /** A process begins to serve, or is another one than before. */
  readonly onChange: () => void
  readonly onWaiting: (sentence: string) => void
  /** An outage or a recovery, as the process of the feeds notices it. */
  readonly onOutage: (sentence: string) => void
  /** The service cannot continue. */
  readonly onFailed: (reason: Error) => void
}

const createFeedStateRelay = (apis: () => readonly ServiceChild[]) => {
  let states: readonly SentFeedState[] = []
  const send = (isReport: boolean): void => {
    for (const { current } of apis())
      current()
        .call('feeds', states, isReport)
        .catch(() => undefined)
  }
  return {
    reported: (sent: readonly SentFeedState[]): void => {
      states = sent
      send(true)
    },
    interrupted: (): void => {
      states = interrupted(states)
      send(false)
    },
  }
}

/** Starts all children. Long because its functions share the children. */
export const startChildren = (config: Config, childrenOptions: ChildrenOptions) => {
  const { logger, settings, onChange, onWaiting, onOutage, onFailed } = childrenOptions
  const apis = (): readonly ServiceChild[] => children.filter(({ isApi }) => isApi)
  const notAnswering = (): readonly string[] =>
    children.filter(({ current }) => !current().isAnswering()).map(({ name }) => name)
  const feeds = createFeedStateRelay(apis)

  const plans = plannedProcesses(config)
  const apiProcesses = plans.filter(({ roles }) => roles.includes('api')).length
  const known = settings.then(common => ({ ...common, apiProcesses }))
  known.catch(() => undefined)
  const options: ServiceChildOptions = {
    ...{ settings: known, limits: createSharedLimits(), notAnswering, onChange, onFailed },
    onSilent: name => logger.error({ name }, 'a process is not responding; no new connections will be sent to it'),
    onEnded: ({ name, roles }, how, pauseMs) => {
      logger.error({ name, how, pauseMs }, 'a process has exited and is being restarted')
      if (!roles.includes('api')) feeds.interrupted()
    },
    reports: {
      waiting: onWaiting,
      outage: onOutage,
      refused: reason => onFailed(new Error(reason)),
      reportFeeds: feeds.reported,
      allMetrics: async () => joinedTexts(await metricsOf(children)),
    },
  }
  const children = plans.map(plan => startServiceChild(plan, options))
  const ready = Promise.all(children.map(child => child.ready))
  // The start may fail for another reason, and then nothing waits for it.
  ready.catch(() => undefined)
  return {
    apis,
    /** Resolves when each child has been ready once. */
    ready,
    pids: () => ({
      service: process.pid,
      ...Object.fromEntries(children.map(({ name, current }) => [name, current().pid])),
    }),
    up: (): readonly Sample[] =>
      children.map(({ name, current }) => ({ labels: { process: name }, value: current().isAnswering() ? 1 : 0 })),
    /** The metrics of each child that answers in time. */
    metrics: () => metricsOf(children),
    /** Makes the API refuse a token or a grant. Rejects with Unavailable if no process could note it in Postgres. */
    revoke: (name: string) => revokeAt(apis(), name),
    /** From now on no process reports that it is ready. */
    drain: () => {
      for (const { current } of children)
        current()
          .call('drain')
          .catch(() => undefined)
    },
    /** The feeds end after the requests, which may wait for them. */
    stop: async () => {
      await Promise.all(apis().map(api => api.stop(API_STOP_MAX_MS)))
      await Promise.all(children.map(child => child.stop(FEEDS_STOP_MAX_MS)))
    },
  }
}

export type Children = ReturnType<typeof startChildren>
