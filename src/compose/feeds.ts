import { csv } from '../adapters/files/csv.ts'
import { jsonl } from '../adapters/files/jsonl.ts'
import { openFactBus } from '../adapters/kafka/factBus.ts'
import { parquet } from '../adapters/files/parquet.ts'
import type { Ledger } from '../commands/handle.ts'
import { watchedAllowance } from '../commands/subscriptions.ts'
import type { Config, KafkaConfig } from '../config.ts'
import { projectorOf } from '../feeds/projector.ts'
import { publisherOf } from '../feeds/publisher.ts'
import { readModels } from '../feeds/readModels.ts'
import { type Feed, type FeedState, runFeeds } from '../feeds/subscriptionLoop.ts'
import type { Database, EventStore, Log, SubscriberBus } from '../ports.ts'
import { exportsFeed } from '../processes/exports/exports.ts'
import { fulfilment } from '../processes/fulfilment.ts'
import { manifestsFeed } from '../processes/manifests.ts'
import { feedOf } from '../processes/processManager.ts'
import { paymentRecovery } from '../processes/paymentRecovery.ts'
import { subscriptionsFeed } from '../processes/subscriptions/subscriptions.ts'
import type { Releasers } from '../releasers.ts'
import { withFactBase } from './factBase.ts'

/** The adapters that feeds and processes work with. */
export type CoreServices = {
  readonly database: Database
  readonly store: EventStore
  readonly ledger: Ledger
  readonly log: Log
  /** The address in front of the `dataschema` of every fact. */
  readonly factBase: string
}
export type FeedStates = ReadonlyMap<string, FeedState>

/** Why a feed does not go on, for `ledger doctor`. The log has it too, where Postgres is what does not answer. */
const keepError = async ({ sql }: Database, { name, error }: FeedState): Promise<void> => {
  const kept =
    error === undefined
      ? sql('delete from feed_errors where name = $1', [name])
      : sql(
          `insert into feed_errors (name, error) values ($1, $2)
           on conflict (name) do update set error = excluded.error, at = now()`,
          [name, error],
        )
  await kept.catch(() => undefined)
}

export type FeedSettings = Pick<Config, 'roles' | 'manifestEveryMs' | 'kafka'>
export type OpenBus = (kafka: KafkaConfig, log: Log) => SubscriberBus

/**
 * Each role's feeds under a name of their own, so that roles may live in different processes. `openBus` opens the
 * connections to the broker.
 */
export const startFeeds = async (
  config: FeedSettings,
  inside: CoreServices,
  releasers: Pick<Releasers, 'add'>,
  openBus: OpenBus = openKafka,
): Promise<FeedStates> => {
  const { database, store, ledger, log, factBase } = inside
  const { world } = ledger
  const states = new Map<string, FeedState>()
  let keeping = Promise.resolve()
  const report = (state: FeedState): void => {
    const known = states.get(state.name)
    if (state.error !== undefined && known?.error !== state.error) log.error({ ...state }, 'feed')
    // A process that waits for its turn leaves alone what the one that has it says, and lets go of it when it gets on.
    const getsOn = state.state !== 'waiting' && known?.state === 'waiting'
    if (known?.error !== state.error || getsOn) keeping = keeping.then(() => keepError(database, state))
    states.set(state.name, state)
  }
  const publishes = config.roles.includes('publisher') && config.kafka
  const open = (kafka: KafkaConfig): SubscriberBus => withFactBase(openBus(kafka, log), factBase)
  const buses = publishes && { analysts: open(publishes), subscribers: open(publishes) }
  releasers.add(async () => {
    if (buses) await Promise.all(Object.values(buses).map(bus => bus.close()))
  })
  const stop = new AbortController()
  const running: Promise<void>[] = []
  const run = (name: string, feeds: readonly Feed[]): void => {
    running.push(runFeeds(name, feeds, { store, database, world, report }, stop.signal))
  }
  releasers.add(async () => {
    stop.abort()
    await Promise.all(running)
  })
  const onFailure = (key: string, error: unknown): void => log.error({ key, error }, 'a task could not be finished')
  if (config.roles.includes('projector'))
    run('projector', [
      projectorOf({ database, store, world }, readModels, (name, error) =>
        log.error({ name, error }, 'a read model is left behind'),
      ),
    ])
  if (config.roles.includes('worker'))
    run('worker', [
      feedOf(paymentRecovery(ledger), { database, ledger, onFailure }),
      feedOf(fulfilment(ledger), { database, ledger, onFailure }),
      exportsFeed({ database, ledger, formats: { csv, jsonl, parquet }, log }),
      manifestsFeed({ database, ledger, everyMs: config.manifestEveryMs }),
    ])
  if (buses) {
    const isStillAllowed = watchedAllowance(ledger)
    run('publisher', [publisherOf({ database, bus: buses.analysts, store, world })])
    run('subscriptions', [subscriptionsFeed({ database, bus: buses.subscribers, ledger, isStillAllowed, log })])
  }
  return states
}

const openKafka: OpenBus = ({ brokers, ssl, sasl }, log) =>
  openFactBus({ brokers, ssl, sasl, clientId: 'payment-ledger', logger: log })
