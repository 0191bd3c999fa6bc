import { randomBytes } from 'node:crypto'
import { createServer } from 'node:net'
import { join } from 'node:path'
import type { RequestListener } from 'node:http'
import { pino } from 'pino'
import { type Addresses, publishAddresses } from './addresses.ts'
import { csv } from './adapters/csv.ts'
import { openEventStore } from './adapters/eventstoredb.ts'
import { jsonl } from './adapters/jsonl.ts'
import { openFactBus } from './adapters/kafka.ts'
import { parquet } from './adapters/parquet.ts'
import { openDatabase } from './adapters/postgres.ts'
import { createLedger, type Ledger } from './commands/handle.ts'
import type { Config, KafkaConfig } from './config.ts'
import { openDataDirectory } from './embedded/dataDirectory.ts'
import { createIssuer, type Issuer } from './embedded/issuer/issuer.ts'
import { startParts } from './embedded/parts.ts'
import { projectorOf } from './feeds/projector.ts'
import { readModels } from './feeds/readModels.ts'
import { publisherOf } from './feeds/publisher.ts'
import { type Feed, type FeedState, runFeeds } from './feeds/run.ts'
import { createTables } from './feeds/schema.ts'
import {
  type Authenticate,
  bearerAuthentication,
  createApp,
  createBoundary,
  createCursors,
  healthRoutes,
  listen,
  nobody,
  routes,
  type Services,
} from './http/index.ts'
import { openTokenVerifier } from './identity/tokens.ts'
import type { Database, EventStore, FactBus, Log } from './ports.ts'
import { exportsFeed } from './processes/exports.ts'
import { feedOf } from './processes/process.ts'
import { fulfilment } from './processes/fulfilment.ts'
import { settlement } from './processes/settlement.ts'
import { createReleasers, type Releasers } from './releasers.ts'
import { realWorld } from './world.ts'

export type Service = {
  readonly addresses: Addresses
  readonly logs: string
  /** Settles with the reason when a part is gone for good. */
  readonly failed: Promise<Error>
  /** Drains, then ends everything that was started, newest first. Twice is once. */
  readonly close: () => Promise<void>
}

const DRAIN_MS = 10_000
const BODY_DEADLINE_MS = 30_000
const POOL_MAX = 10

/** Builds the service of this configuration and starts it. Whatever was started is ended when a later step fails. */
export const compose = async (config: Config): Promise<Service> => {
  let log: Log | undefined
  const releasers = createReleasers(error => log?.error({ error }, 'a part did not close'))
  try {
    return await start(config, releasers, opened => {
      log = opened
    })
  } catch (error) {
    await releasers.release()
    throw error
  }
}

/** Whether anything is kept in the data directory: then it belongs to this process alone. */
const isEmbedded = ({ databaseUrl, eventStoreUrl, issuer }: Config): boolean =>
  databaseUrl === undefined || eventStoreUrl === undefined || issuer === undefined

const start = async (config: Config, releasers: Releasers, onLog: (log: Log) => void): Promise<Service> => {
  const embedded = isEmbedded(config)
  if (embedded) {
    const directory = await openDataDirectory(config.dataDir)
    releasers.add(() => directory.release())
  }
  const { log, place, flush } = await openLog(config)
  releasers.add(flush)
  onLog(log)
  const failed = Promise.withResolvers<Error>()
  const parts = await startParts({
    dataDir: config.dataDir,
    database: config.databaseUrl === undefined,
    eventStore: config.eventStoreUrl === undefined,
    log: line => log.info({ line }, 'embedded part'),
    onExit: failed.resolve,
  })
  releasers.add(parts.stop)
  const databaseUrl = config.databaseUrl ?? parts.databaseUrl ?? ''
  const eventStoreUrl = config.eventStoreUrl ?? parts.eventStoreUrl ?? ''
  const database = openDatabase({ connectionString: databaseUrl, poolMax: POOL_MAX, applicationName: 'ledger' })
  releasers.add(() => database.close())
  const store = openEventStore({ connectionString: eventStoreUrl })
  releasers.add(() => store.close())
  await createTables(database)
  const ledger = createLedger(store, realWorld(config.crashAt))
  const feeds = await startFeeds(config, { database, store, ledger, log }, releasers)
  const port = config.port === 0 ? await freePort(config.host) : config.port
  const issuer = config.issuer ?? `http://localhost:${port}/oauth`
  await startHttp(config, { port, issuer, database, ledger, log, feeds }, releasers)
  const addresses: Addresses = {
    api: `http://localhost:${port}`,
    event_store: eventStoreUrl,
    postgres: databaseUrl,
    kafka: config.kafka?.brokers.join(',') ?? null,
    issuer,
    pids: { service: process.pid, ...parts.pids },
  }
  if (embedded) releasers.add(await publishAddresses(config.dataDir, addresses))
  return { addresses, logs: place, failed: failed.promise, close: releasers.release }
}

type OpenedLog = { readonly log: Log; readonly place: string; readonly flush: () => Promise<void> }

const openLog = async ({ dataDir, logLevel, databaseUrl }: Config): Promise<OpenedLog> => {
  // Beside real parts the log goes where a container's log goes; at a terminal it would bury what the person reads.
  const place = databaseUrl === undefined ? join(dataDir, 'ledger.log') : 'stdout'
  const destination = pino.destination({ dest: place === 'stdout' ? 1 : place, sync: false })
  const log = pino({ level: logLevel, base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination)
  return { log, place, flush: async () => destination.flushSync() }
}

type Inside = { readonly database: Database; readonly store: EventStore; readonly ledger: Ledger; readonly log: Log }
export type FeedStates = ReadonlyMap<string, FeedState>

/** Each role's feeds under a name of their own, so that roles may live in different processes. */
const startFeeds = async (config: Config, inside: Inside, releasers: Releasers): Promise<FeedStates> => {
  const { database, store, ledger, log } = inside
  const { world } = ledger
  const states = new Map<string, FeedState>()
  const report = (state: FeedState): void => {
    if (state.error !== undefined && states.get(state.name)?.error !== state.error) log.error({ ...state }, 'feed')
    states.set(state.name, state)
  }
  const bus = config.roles.includes('publisher') && config.kafka ? openBus(config.kafka, log) : undefined
  releasers.add(async () => bus?.close())
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
      projectorOf(database, readModels, (name, error) => log.error({ name, error }, 'a read model is left behind')),
    ])
  if (config.roles.includes('worker'))
    run('worker', [
      feedOf(settlement(ledger), database, world, onFailure),
      feedOf(fulfilment(ledger), database, world, onFailure),
      exportsFeed({ database, ledger, formats: { csv, jsonl, parquet }, log }),
    ])
  if (bus) run('publisher', [publisherOf(database, bus)])
  return states
}

const openBus = ({ brokers, ssl, sasl }: KafkaConfig, log: Log): FactBus =>
  openFactBus({ brokers, ssl, sasl, clientId: 'payment-ledger', logger: log })

type HttpParts = Omit<Inside, 'store'> & { readonly port: number; readonly issuer: string; readonly feeds: FeedStates }

/** Every role says how it is; only the api role says more. */
const startHttp = async (config: Config, parts: HttpParts, releasers: Releasers): Promise<void> => {
  const { port, issuer, database, ledger, log, feeds } = parts
  const isApi = config.roles.includes('api')
  const { dataDir, audience } = config
  const embedded = isApi && !config.issuer ? await createIssuer({ issuer, audience, dataDir }) : undefined
  const stopping = new AbortController()
  const services: Services = {
    ledger,
    stopping: stopping.signal,
    database,
    cursors: createCursors(await cursorSecret(database), () => ledger.world.now()),
    idempotencyRetentionMs: config.idempotencyRetentionMs,
    bodyDeadlineMs: BODY_DEADLINE_MS,
    needsFourEyes: config.needsFourEyes,
    audience,
    issuer: { url: issuer, metadata: embedded?.metadata },
    health: () => health(database, ledger, feeds),
  }
  const authenticate = isApi ? await openAuthentication(parts, config, embedded, releasers) : nobody
  const app = createApp({
    routes: isApi ? routes : healthRoutes,
    boundary: createBoundary(services, authenticate),
    log,
    door: { stopping: stopping.signal },
    ...(embedded ? { issuer: { path: '/oauth', handler: embedded.handler } } : {}),
  })
  const server = await listen(app as RequestListener, { host: config.host, port })
  releasers.add(() => {
    stopping.abort()
    return server.close(DRAIN_MS)
  })
}

const openAuthentication = async (
  { issuer, log }: HttpParts,
  { audience }: Config,
  embedded: Issuer | undefined,
  releasers: Releasers,
): Promise<Authenticate> => {
  const verifier = await openTokenVerifier({
    issuer,
    audience,
    ...(embedded ? { fetchJwks: async () => embedded.jwks } : {}),
    onKeysUnreachable: error => log.warn({ error }, 'the keys of the issuer cannot be had'),
  })
  releasers.add(async () => verifier.close())
  return bearerAuthentication(verifier)
}

/** One for all instances, made by whichever needs it first. */
const cursorSecret = async ({ sql }: Database): Promise<Uint8Array> => {
  await sql('create table if not exists cursor_secrets (id integer primary key check (id = 1), secret text not null)')
  const fresh = randomBytes(32).toString('base64')
  await sql('insert into cursor_secrets (id, secret) values (1, $1) on conflict (id) do nothing', [fresh])
  const [row] = await sql<{ secret: string }>('select secret from cursor_secrets where id = 1')
  return Buffer.from(row?.secret ?? fresh, 'base64')
}

const health = async ({ sql }: Database, { store }: Ledger, feeds: FeedStates) => {
  const outcome = (work: Promise<unknown>) => work.then(() => 'ok').catch((error: Error) => error.message)
  const [event_store, postgres] = await Promise.all([outcome(store.head()), outcome(sql('select 1'))])
  const stopped = [...feeds.values()].filter(({ state }) => state === 'stopped')
  const checks = {
    event_store,
    postgres,
    ...Object.fromEntries([...feeds.values()].map(feed => [feed.name, feed.error ?? feed.state])),
  }
  return { ready: event_store === 'ok' && postgres === 'ok' && stopped.length === 0, checks }
}

const freePort = (host: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen(0, host, () => {
      const address = probe.address()
      probe.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })
