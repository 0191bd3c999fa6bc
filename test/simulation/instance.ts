import { EVENT_STREAMS_POOL_MAX } from '../../src/compose/databasePools.ts'
import { createLedger, type Ledger } from '../../src/commands/commandHandler.ts'
import { adoptLog, checkLog, type SeenFact } from '../../src/logIdentity/logIdentity.ts'
import { createDenials } from '../../src/commands/denials.ts'
import { createPersonalTexts } from '../../src/personalTexts/personalTexts.ts'
import { createTenantStatuses } from '../../src/commands/tenantStatus.ts'
import { type FeedSettings, type FeedStates, startFeeds } from '../../src/compose/feeds.ts'
import {
  type Authenticate,
  createRequestPipeline,
  createCursors,
  createRateLimits,
  createAdmission,
  createConcurrencyLimits,
  createTail,
  type Services,
} from '../../src/http/index.ts'
import type { Admission } from '../../src/http/admission/requestTurn.ts'
import { DEFAULT_BYTES } from '../../src/settings/limits.ts'
import type { RequestPipeline } from '../../src/http/requestPipeline.ts'
import { createApiKeySecrets } from '../../src/identity/apiKeySecrets.ts'
import {
  type Database,
  type EventStore,
  type FactBus,
  type Logger,
  type RateCounter,
  Unavailable,
} from '../../src/ports.ts'
import { everyConcurrency, everyRate } from '../support/limits.ts'
import type { Machine } from './machine.ts'

/** One process of the service with all roles. Its code is that of the service; only its ports are simulated. */
export type Instance = {
  readonly machine: Machine
  readonly pipeline: RequestPipeline
  readonly admission: Admission
  readonly feedStates: () => FeedStates
  /** Aborts requests that do not end by themselves, such as event streams. The feeds continue, as in a draining process. */
  readonly stopping: AbortController
}

export type InstanceDependencies = {
  readonly machine: Machine
  readonly store: EventStore
  readonly database: Database
  readonly bus: FactBus
  readonly authenticate: Authenticate
  readonly logger: Logger
  /** Called with the time for which a request of the tenant waited for its turn. */
  readonly onWait: (tenant: string, waitedMs: number) => void
  /** Called when the process refuses the log, because it is not the log of its tables. */
  readonly onRefused: () => void
}

const MINUTE_MS = 60_000
export const RETENTION_MS = 30 * 24 * 60 * MINUTE_MS
export const MANIFEST_EVERY_MS = 4_000
const SECRET = Buffer.from('the cursors of a simulated service')
/** Few, so that one tenant has more requests than there are turns. */
const TURNS = 48
const PEPPER = 'the pepper of the API keys of a simulated service'
const UNLIMITED = { requests: 1_000_000, windowSeconds: 60 }
const uncounted: RateCounter = { count: () => Promise.resolve({ used: 1, resetMs: MINUTE_MS }) }

const servicesOf = ({ machine, store, database }: InstanceDependencies, stopping: AbortSignal): Services => {
  const ledger = createLedger(store, machine.world)
  return {
    ledger,
    database,
    lists: database,
    bulk: database,
    personalTexts: createPersonalTexts(database.sql, ledger),
    draining: stopping,
    stopping,
    cursors: createCursors(SECRET, () => machine.world.now()),
    rateLimits: createRateLimits(everyRate(UNLIMITED), { local: uncounted, shared: uncounted }),
    keySecrets: createApiKeySecrets('dev', PEPPER),
    concurrencyLimits: createConcurrencyLimits(everyConcurrency(100)),
    tail: createTail({ database, connections: EVENT_STREAMS_POOL_MAX, world: machine.world }),
    tenantStatuses: createTenantStatuses(ledger),
    denials: createDenials(ledger, () => undefined),
    operatorsTenant: undefined,
    apiKeysPerTenantMax: 100,
    exportBytesPerTenant: DEFAULT_BYTES.exportsOfTenant,
    subscriptionConfirmationMs: 90 * 24 * 60 * MINUTE_MS,
    subscriptionsPerTenantMax: 100,
    topicWaitMs: 0,
    idempotencyRetentionMs: RETENTION_MS,
    bodyDeadlineMs: MINUTE_MS,
    needsFourEyes: () => false,
    publicUrl: 'http://localhost:8080',
    schemaBaseUrl: '',
    issuer: { url: 'http://localhost/oauth', metadata: undefined },
    metrics: async () => '',
    machine: async () => ({ freeBytes: 0, certificates: [] }),
    health: () => Promise.resolve({ ready: true, checks: {} }),
  }
}

const FEED_SETTINGS: FeedSettings = {
  roles: ['projector', 'publisher', 'worker'],
  manifestEveryMs: MANIFEST_EVERY_MS,
  kafka: { brokers: ['simulated'], ssl: false },
  openSigning: 'off',
  subscriptionTopicBytes: 2 ** 30,
  subscriptionConfirmationMs: 90 * 24 * 60 * MINUTE_MS,
}

/** A simulated process always ends without warning and releases nothing. */
const noCleanup = { defer: () => undefined }

const RETRY_MS = 250
const LOG_CHECK_MS = 3_000

/** As in `npm start`, the feeds begin when the log is known to be that of the tables, and the log is checked repeatedly. */
const runWhileLogMatches = async (
  { machine, database, logger }: InstanceDependencies,
  ledger: Ledger,
  begin: () => Promise<void>,
  onRefused: () => void,
) => {
  const { store, world } = ledger
  let seen: SeenFact | undefined
  let check = () => adoptLog(ledger, database)
  let hasBegun = false
  for (;;) {
    try {
      await check()
      if (!hasBegun) await begin()
      hasBegun = true
      check = async () => {
        seen = await checkLog({ database, store, world }, seen)
      }
    } catch (error) {
      if (error instanceof Unavailable) {
        await machine.world.sleep(RETRY_MS)
        continue
      }
      logger.error({ error }, OTHER_LOG)
      return onRefused()
    }
    await machine.world.sleep(hasBegun ? LOG_CHECK_MS : RETRY_MS)
  }
}

/** Logged by a process that ends because it found the log of another ledger, or another state of its log. */
export const OTHER_LOG = 'event log and tables do not match'

/** Reports the waits for turns, but those of a process that was paused meanwhile. */
const watchedAdmission = (
  { turns, bodies, refusals }: Admission,
  { world, isPaused, pauses }: Machine,
  onWait: InstanceDependencies['onWait'],
): Admission => {
  const enter: Admission['turns']['enter'] = async (account, signal) => {
    const [beganMs, before] = [world.monotonicMs(), isPaused() ? undefined : pauses()]
    try {
      return await turns.enter(account, signal)
    } finally {
      if (!signal?.aborted && pauses() === before) onWait(account.tenant, world.monotonicMs() - beganMs)
    }
  }
  return {
    bodies,
    refusals,
    turns: {
      tryEnter: account => turns.tryEnter(account),
      enter,
      isAlone: tenant => turns.isAlone(tenant),
    },
  }
}

export const startInstance = (dependencies: InstanceDependencies): Instance => {
  const { machine, store, database, bus, logger } = dependencies
  const stopping = new AbortController()
  const services = servicesOf(dependencies, stopping.signal)
  const { ledger } = services
  let states: FeedStates = new Map()
  const begin = async (): Promise<void> => {
    states = await startFeeds(
      FEED_SETTINGS,
      { database, store, ledger, logger, schemaBaseUrl: '' },
      noCleanup,
      () => bus,
    )
  }
  void runWhileLogMatches(dependencies, ledger, begin, dependencies.onRefused)
  const pipeline = createRequestPipeline(services, dependencies.authenticate)
  const admission = watchedAdmission(
    // Virtual time has no time of a processor, which differs from run to run.
    createAdmission(
      machine.world,
      () => TURNS,
      () => 0,
    ),
    machine,
    dependencies.onWait,
  )
  return { machine, pipeline, admission, feedStates: () => states, stopping }
}
