import { EVENT_STREAMS_POOL_MAX } from '../../src/compose/databasePools.ts'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { openDatabase } from '../../src/adapters/postgres/database.ts'
import { createLocalCounter } from '../../src/adapters/rateLimiter/counters.ts'
import { createTenantStatuses } from '../../src/commands/tenantStatus.ts'
import { createDenials } from '../../src/commands/denials.ts'
import { createLedger } from '../../src/commands/commandHandler.ts'
import { createPersonalTexts } from '../../src/personalTexts/personalTexts.ts'
import {
  type Authenticate,
  createAddressOf,
  createApp,
  createRequestPipeline,
  createCursors,
  createRateLimits,
  createConcurrencyLimits,
  createTail,
  listen,
  routes,
  type Services,
} from '../../src/http/index.ts'
import type { ResolveVersion } from '../../src/http/versions/requestedVersion.ts'
import { type Admission, createAdmission } from '../../src/http/admission/requestTurn.ts'
import { type RefusalReason, TurnRefused } from '../../src/fairness/turns.ts'
import { createApiKeySecrets } from '../../src/identity/apiKeySecrets.ts'
import { DEFAULT_BYTES, DEFAULT_CONCURRENCY_LIMITS, type RateLimitSettings } from '../../src/settings/limits.ts'
import { everyRate } from './limits.ts'
import { type Principal, SCOPES } from '../../src/identity/principal.ts'
import { type Database, type EventStore, Unavailable, type World } from '../../src/ports.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import type { TestService } from './service.ts'

/** Differences of a variant: the same HTTP layer on the shared service's dependencies, with a defect or another setting. */
export type Difference = {
  readonly store?: (real: EventStore) => EventStore
  readonly database?: (real: Database) => Database
  readonly world?: Partial<World>
  readonly authenticate?: Authenticate
  readonly turns?: Admission['turns']
  /** By default no refusal is held. */
  readonly refusals?: Admission['refusals']
  /** Aborted: the variant is shutting down. */
  readonly stopping?: AbortSignal
  readonly limits?: RateLimitSettings
  readonly trustedProxies?: readonly string[]
  readonly resolveVersion?: ResolveVersion
  readonly services?: (usual: Services) => Services
  /** The wait at shutdown for requests in flight. */
  readonly drainMs?: number
}

export type Variant = { readonly api: string; readonly close: () => Promise<void> }

export const TENANT = 'variants'

/** The principal of every request. */
export const caller: Principal = {
  tenant: TENANT,
  subject: 'tester',
  client: 'tester',
  scopes: new Set(SCOPES),
  kind: 'workload',
}

const many = { requests: 1_000_000, windowSeconds: 60 }
const none = { requests: 0, windowSeconds: 60 }
const UNLIMITED = everyRate(many)
/** Every rate limit is used up before the first request. */
export const limited: Difference = { limits: everyRate(none) }

/** There is no turn for any request. */
export const withoutTurns = (reason: RefusalReason): Difference => ({
  turns: {
    tryEnter: () => undefined,
    enter: () => Promise.reject(new TurnRefused(reason)),
    isAlone: () => false,
  },
})

/** The same in all variants, so that one variant accepts the cursors of another. */
const SECRET = Buffer.from('the secret of the cursors of every variant')
const PEPPER = 'the pepper of the keys of every variant'
const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }
const DRAIN_MS = 1_000

export const startVariant = async ({ addresses }: TestService, different: Difference = {}): Promise<Variant> => {
  const realDatabase = openDatabase({ connectionString: addresses.postgres })
  const realStore = openEventStore({ connectionString: addresses.event_store })
  const database = different.database?.(realDatabase) ?? realDatabase
  const ledger = createLedger(different.store?.(realStore) ?? realStore, { ...realWorld(), ...different.world })
  const stopping = new AbortController()
  const denials = createDenials(ledger, () => undefined)
  const usual: Services = {
    ledger,
    database,
    lists: database,
    bulk: database,
    personalTexts: createPersonalTexts(database.sql, ledger),
    draining: stopping.signal,
    stopping: stopping.signal,
    cursors: createCursors(SECRET, () => ledger.world.now()),
    rateLimits: createRateLimits(different.limits ?? UNLIMITED, {
      local: createLocalCounter(),
      shared: createLocalCounter(),
    }),
    keySecrets: createApiKeySecrets('dev', PEPPER),
    concurrencyLimits: createConcurrencyLimits({
      ...DEFAULT_CONCURRENCY_LIMITS,
      exports: 1_000,
      tenant_exports: 1_000,
    }),
    tail: createTail({ database, connections: EVENT_STREAMS_POOL_MAX, world: ledger.world }),
    tenantStatuses: createTenantStatuses(ledger),
    denials,
    apiKeysPerTenantMax: 1_000,
    exportBytesPerTenant: DEFAULT_BYTES.exportsOfTenant,
    subscriptionConfirmationMs: 90 * 24 * 60 * 60 * 1000,
    subscriptionsPerTenantMax: 10_000,
    topicWaitMs: 0,
    idempotencyRetentionMs: 30 * 24 * 60 * 60 * 1000,
    bodyDeadlineMs: 300,
    needsFourEyes: (_, currency) => currency === 'CHF',
    operatorsTenant: TENANT,
    publicUrl: addresses.api,
    schemaBaseUrl: addresses.api,
    issuer: { url: addresses.issuer, metadata: undefined },
    metrics: async () => '',
    machine: async () => ({ freeBytes: 0, certificates: [] }),
    health: async () => ({ ready: true, checks: {} }),
  }
  const services = different.services?.(usual) ?? usual
  const app = createApp({
    routes,
    pipeline: createRequestPipeline(services, different.authenticate ?? (async () => caller)),
    logger: silent,
    admission: {
      ...createAdmission(ledger.world, () => Infinity),
      ...(different.turns && { turns: different.turns }),
      refusals: different.refusals ?? { hold: async () => 0 },
    },
    addressOf: createAddressOf(different.trustedProxies ?? []),
    ...(different.resolveVersion ? { resolveVersion: different.resolveVersion } : {}),
    draining: services.draining,
    stopping: different.stopping ?? stopping.signal,
  })
  const server = await listen(app, { host: '127.0.0.1', port: 0 })
  return {
    api: `http://localhost:${server.port}`,
    close: async () => {
      stopping.abort()
      await server.close(different.drainMs ?? DRAIN_MS)
      await denials.close()
      await realStore.close()
      await realDatabase.close()
    },
  }
}

const failing = (dependency: 'event store' | 'database', effect: 'none' | 'unknown') => () =>
  Promise.reject(new Unavailable(dependency, { effect, cause: new Error('planted') }))

const failingRead = (): AsyncIterable<never> => ({
  [Symbol.asyncIterator]: () => ({ next: failing('event store', 'none') }),
})

/** Every dependency is down. */
export const unavailable: Difference = {
  store: real => ({ ...real, append: failing('event store', 'none'), readStream: failingRead }),
  database: real => ({ ...real, sql: failing('database', 'none'), transaction: failing('database', 'none') }),
}

/** Appends get no response: they may have taken effect. */
export const unansweredAppends: Difference = {
  store: real => ({ ...real, append: failing('event store', 'unknown') }),
}

const PAUSE_MAX_MS = 200

/** Every append loses against a concurrent one. Pauses between attempts are short; deadlines are unchanged. */
export const lostAppends: Difference = {
  store: real => ({ ...real, append: async (_stream, _events, expected) => ({ ok: false, actual: expected }) }),
  world: { sleep: (timeMs, signal) => realWorld().sleep(timeMs > PAUSE_MAX_MS ? timeMs : 1, signal) },
}

/** Forty days later: idempotency keys, cursors and files have expired. */
export const later: Difference = { world: { now: () => Date.now() + 40 * 24 * 60 * 60 * 1000 } }

/** A bug in the service that every request meets. */
export const broken: Difference = {
  services: usual => ({
    ...usual,
    get ledger(): never {
      throw new Error('planted')
    },
  }),
}
