import { csv } from '../adapters/files/csv.ts'
import { jsonl } from '../adapters/files/jsonl.ts'
import { parquet } from '../adapters/files/parquet.ts'
import type { Ledger } from '../commands/commandHandler.ts'
import { watchedAllowance } from '../commands/subscriptions/permission.ts'
import type { Config, KafkaConfig } from '../settings/config.ts'
import { projectorOf } from '../feeds/projector.ts'
import { publisherOf } from '../feeds/publisher.ts'
import { readModels } from '../feeds/readModels.ts'
import { type Feed, type FeedState, runFeeds } from '../feeds/feedLoop.ts'
import type { Database, EventStore, FactBus, Logger, World } from '../ports.ts'
import { exportsFeed } from '../processes/exports/exports.ts'
import { fulfilment } from '../processes/fulfilment.ts'
import { manifestsFeed } from '../processes/manifests.ts'
import { feedOf } from '../processes/processManager.ts'
import { paymentRecovery } from '../processes/paymentRecovery.ts'
import { HEAD_SIGNING } from '../evidence/tree.ts'
import { observe } from '../lib/metrics.ts'
import { subscriptionsFeed } from '../processes/subscriptions/subscriptionsFeed.ts'
import type { FeedLease } from '../schema/locks.ts'
import type { CleanupStack } from '../lib/cleanupStack.ts'
import { observeProjector } from './observedProjector.ts'
import { withSchemaBaseUrl } from './schemaBaseUrl.ts'

/** The services that feeds, processes and requests share. */
export type CoreServices = {
  readonly database: Database
  readonly store: EventStore
  readonly ledger: Ledger
  readonly logger: Logger
  /** The base URL of the `dataschema` of every fact. */
  readonly schemaBaseUrl: string
}
export type FeedStates = ReadonlyMap<string, FeedState>

/** Saves the error of a feed for `ledger doctor`. The log has it too, in case Postgres does not answer. */
const saveError = async ({ sql }: Database, { name, error }: FeedState): Promise<void> => {
  const saved =
    error === undefined
      ? sql('delete from feed_errors where name = $1', [name])
      : sql(
          `insert into feed_errors (name, error) values ($1, $2)
           on conflict (name) do update set error = excluded.error, at = now()`,
          [name, error],
        )
  await saved.catch(() => undefined)
}

export type FeedSettings = Pick<
  Config,
  'roles' | 'manifestEveryMs' | 'kafka' | 'subscriptionTopicBytes' | 'subscriptionConfirmationMs'
> & {
  readonly needsAuthorizer?: boolean
  /** Opens the feed that signs the log; `off` is shown as its state. */
  readonly openSigning: ((services: Pick<CoreServices, 'database' | 'store'> & { world: World }) => Feed) | 'off'
  /** Called with each state of a feed. */
  readonly onState?: (state: FeedState) => void
}
export type OpenBus = (kafka: KafkaConfig, logger: Logger) => FactBus

type StartGroup = (name: FeedLease, feeds: readonly Feed[]) => void

/**
 * The feeds of a role have a lease of their own (`publisher` has two), so roles may run in different processes.
 * `openBus` connects to the broker; to Kafka when absent.
 */
export const startFeeds = async (
  config: FeedSettings,
  services: CoreServices,
  cleanup: Pick<CleanupStack, 'defer'>,
  openBus?: OpenBus,
): Promise<FeedStates> => {
  const { database, store, ledger, logger } = services
  const { world } = ledger
  const projector = observeProjector()
  const { states, report, stopObserving } = createFeedStates(services, [projector.reported, config.onState])
  cleanup.defer(async () => stopObserving())
  const buses = publishes(config) ? openBuses(config, services, openBus ?? (await loadKafka())) : undefined
  cleanup.defer(async () => {
    if (buses) await Promise.all(Object.values(buses).map(bus => bus.close()))
  })
  const stop = new AbortController()
  const groups: Promise<void>[] = []
  const startGroup: StartGroup = (name, feeds) =>
    void groups.push(runFeeds(name, feeds, { store, database, world, report }, stop.signal))
  cleanup.defer(async () => {
    stop.abort()
    await Promise.all(groups)
  })
  if (config.roles.includes('projector'))
    startGroup('projector', [projectorOf({ database, store, world }, readModels, onFailure(logger), projector.changed)])
  if (config.roles.includes('worker')) {
    const { openSigning } = config
    startProcesses(config, services, startGroup)
    if (openSigning === 'off') report({ name: HEAD_SIGNING, state: 'off', position: 0n })
    else startGroup('sealer', [openSigning({ database, store, world })])
  }
  if (buses) {
    const { subscriptionTopicBytes: topicBytes, subscriptionConfirmationMs: confirmationMs } = config
    const settings = { topicBytes, confirmationMs, needsAuthorizer: config.needsAuthorizer ?? false }
    const delivery = { ...services, ...settings, isStillAllowed: watchedAllowance(ledger), projector }
    startGroup('publisher', [publisherOf({ database, bus: buses.publisher, store, world })])
    startGroup('subscriptions', [subscriptionsFeed({ ...delivery, bus: buses.subscriptions })])
  }
  return states
}

const onFailure =
  (logger: Logger) =>
  (name: string, error: unknown): void =>
    logger.error({ name, error }, 'a read model failed; retrying it while the others continue')

const startProcesses = (
  { manifestEveryMs }: FeedSettings,
  { database, ledger, logger }: CoreServices,
  startGroup: StartGroup,
): void => {
  const onFailure = (key: string, error: unknown): void => logger.error({ key, error }, 'a task failed')
  startGroup('worker', [
    feedOf(paymentRecovery(ledger), { database, ledger, onFailure }),
    feedOf(fulfilment(ledger), { database, ledger, onFailure }),
    exportsFeed({ database, ledger, formats: { csv, jsonl, parquet }, logger }),
    manifestsFeed({ database, ledger, everyMs: manifestEveryMs }),
  ])
}

type PublishingSettings = FeedSettings & { readonly kafka: KafkaConfig }

const publishes = (config: FeedSettings): config is PublishingSettings =>
  config.roles.includes('publisher') && config.kafka !== undefined

/** One connection for the publisher and one for the subscriptions. */
const openBuses = ({ kafka }: PublishingSettings, { logger, schemaBaseUrl }: CoreServices, openBus: OpenBus) => {
  const open = (): FactBus => withSchemaBaseUrl(openBus(kafka, logger), schemaBaseUrl)
  return { publisher: open(), subscriptions: open() }
}

/** A feed that fails again and again is live in between, so its state at a scrape tells nothing. */
const countFailures = () => {
  const failures = new Map<string, number>()
  const stopObserving = observe({
    name: 'ledger.feed.failures',
    unit: '',
    type: 'counter',
    help: 'Times that the feed failed after it had made progress.',
    read: () => [...failures].map(([feed, value]) => ({ labels: { feed }, value })),
  })
  const count = (before: FeedState | undefined, { name, error }: FeedState): void => {
    const isFailure = error !== undefined && before?.error === undefined
    failures.set(name, (failures.get(name) ?? 0) + (isFailure ? 1 : 0))
  }
  return { count, stopObserving }
}

/** The states of the feeds of this process, whose errors are logged and saved. The observers are called with each. */
export const createFeedStates = (
  { database, logger }: Pick<CoreServices, 'database' | 'logger'>,
  observers: readonly (((state: FeedState) => void) | undefined)[],
) => {
  const states = new Map<string, FeedState>()
  const failures = countFailures()
  let saving = Promise.resolve()
  const report = (state: FeedState): void => {
    const previous = states.get(state.name)
    if (state.error !== undefined && previous?.error !== state.error)
      logger.error({ ...state }, 'a feed reported an error')
    // A process that waits for the lease must not delete the error of the process that has it; the new holder does.
    const isNewHolder = state.state === 'off' || (state.state !== 'waiting' && previous?.state === 'waiting')
    if (previous?.error !== state.error || isNewHolder) saving = saving.then(() => saveError(database, state))
    failures.count(previous, state)
    states.set(state.name, state)
    for (const observe of observers) observe?.(state)
  }
  return { states, report, stopObserving: failures.stopObserving }
}

/** Loaded by the processes that publish alone. */
const loadKafka = async (): Promise<OpenBus> => {
  const { openFactBus } = await import('../adapters/kafka/factBus.ts')
  return ({ brokers, ssl, sasl }, logger) => openFactBus({ brokers, ssl, sasl, clientId: 'payment-ledger', logger })
}
