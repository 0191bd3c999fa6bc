import { randomBytes } from 'node:crypto'
import type { Server } from 'node:net'
import { createLocalCounter, openSharedCounter } from '../adapters/rateLimiter/counters.ts'
import { DRAIN_MS, TOPIC_WAIT_MS } from '../settings/timeBudgets.ts'
import { createApiVersionUsage } from '../http/versions/apiVersionUsage.ts'
import { createDenials } from '../commands/denials.ts'
import { createPersonalTexts } from '../personalTexts/personalTexts.ts'
import { openCallersSeen } from '../commands/subscriptions/confirmation.ts'
import { createTenantStatuses } from '../commands/tenantStatus.ts'
import type { Config } from '../settings/config.ts'
import { createIssuer, type Issuer } from '../embedded/issuer/issuer.ts'
import { forwardTo } from '../embedded/issuer/issuerServer.ts'
import {
  type AddressOf,
  type Authenticate,
  createAddressOf,
  createApp,
  createAuthentication,
  createRequestPipeline,
  createCursors,
  createRateLimits,
  createAdmission,
  type ConsoleSettings,
  createConcurrencyLimits,
  createTail,
  followRetiredVersions,
  healthRoutes,
  listen,
  receive,
  refuseEveryone,
  type OnRefused,
  routes,
  type Services,
} from '../http/index.ts'
import type { ApiKeyVerifier } from '../identity/apiKeyVerifier.ts'
import { SCOPES } from '../identity/principal.ts'
import { openRevocations, type Revocations } from '../identity/revocations.ts'
import { openTokenVerifier } from '../identity/tokenVerifier.ts'
import type { Database, RateCounter } from '../ports.ts'
import type { CleanupStack } from '../lib/cleanupStack.ts'
import { metricsText } from '../lib/metrics.ts'
import { freeBytesOn } from '../lib/folders.ts'
import { readCertificates } from '../settings/certificates.ts'
import { createTables } from '../schema/tables.ts'
import { openKeySecrets, verifierOf } from './apiKeys.ts'
import type { FeedStates, CoreServices } from './feeds.ts'
import { poolSizesOf } from './databasePools.ts'
import { createHealth } from './health.ts'
import type { Siblings } from './siblings.ts'

export type HttpDependencies = Omit<CoreServices, 'store'> &
  Pick<Services, 'lists' | 'bulk' | 'publicUrl' | 'draining'> & {
    /** The same database, with a connection pool for the tail and the event streams alone. */
    readonly streams: Pick<Database, 'sql'>
    readonly port: number
    /** Holds the port, if it was chosen before. */
    readonly socket: Server | undefined
    readonly issuer: string
    readonly feeds: Pick<FeedStates, 'values'>
    readonly siblings: Siblings | undefined
  }

const BODY_DEADLINE_MS = 30_000

/** Every role serves the health endpoints, `api` all endpoints. Long because it wires the parts of the server once. */
export const startHttp = async (
  config: Config,
  dependencies: HttpDependencies,
  cleanup: CleanupStack,
): Promise<void> => {
  const { port, socket, database, ledger, logger, siblings } = dependencies
  const { audience } = config
  const isApi = config.roles.includes('api')
  const revocations = await openRevocations({
    database,
    onUnread: error => logger.warn({ error }, 'cannot read the revoked tokens'),
  })
  siblings?.onRevoke(revocations.revoke)
  const addressOf = createAddressOf(config.trustedProxies)
  const embedded =
    isApi && !config.issuer ? await openIssuer(config, { ...dependencies, addressOf }, revocations) : undefined
  const keySecrets = isApi ? await openKeySecrets(config) : undefined
  const stopping = new AbortController()
  const denials = createDenials(ledger, error => logger.warn({ error }, 'cannot record the number of denied requests'))
  cleanup.defer(denials.close)
  const sharedCounter = await openSharedCounter(database, error =>
    logger.warn({ error }, 'the shared rate-limit counter is unavailable; each process enforces the limits by itself'),
  )
  cleanup.defer(sharedCounter.close)
  // A service that fails stops without draining.
  const draining = AbortSignal.any([dependencies.draining, stopping.signal])
  const opened = { embedded, keySecrets, denials, draining, stopping: stopping.signal }
  const services = await createServices(config, dependencies, { opened, sharedCounter })
  const apiKeys = keySecrets && verifierOf(keySecrets, ledger)
  const verification = { audience, workloadClaim: config.workloadClaim, revocations, embedded, apiKeys }
  const authenticate = isApi
    ? noting(await openAuthentication(dependencies, verification, cleanup), dependencies, cleanup)
    : refuseEveryone
  const { resolveVersion, usage } = await openVersions(dependencies, cleanup)
  const app = createApp({
    addressOf,
    resolveVersion,
    usage,
    admission: createAdmission(ledger.world),
    routes: isApi ? routes : healthRoutes,
    pipeline: createRequestPipeline(services, authenticate),
    logger,
    draining,
    stopping: stopping.signal,
    ...(embedded ? { issuer: { path: '/oauth', handler: embedded.handler } } : {}),
    ...(isApi ? { console: consoleOf(config, dependencies.issuer) } : {}),
  })
  const server = siblings ? siblings.serve(receive(app)) : await listen(app, { host: config.host, port, socket })
  cleanup.defer(() => {
    stopping.abort()
    return server.close(DRAIN_MS)
  })
}

const consoleOf = ({ console: page }: Config, issuer: string): ConsoleSettings => ({
  issuer,
  clientId: '',
  scope: ['openid', ...SCOPES].join(' '),
  ...page,
})

const openVersions = async ({ database, ledger: { world }, logger }: HttpDependencies, cleanup: CleanupStack) => {
  const usage = createApiVersionUsage({
    database,
    world,
    onFailure: error => logger.warn({ error }, 'cannot store request counts per API version; retrying'),
  })
  cleanup.defer(usage.close)
  const { resolveVersion, close } = await followRetiredVersions({
    database,
    world,
    onFailure: error => logger.warn({ error }, 'cannot read the retired API versions'),
  })
  cleanup.defer(close)
  return { resolveVersion, usage }
}

type Opened = Pick<Services, 'keySecrets' | 'denials' | 'draining' | 'stopping'> & {
  readonly embedded: Issuer | undefined
}

const createServices = async (
  config: Config,
  { publicUrl, schemaBaseUrl, issuer, database, streams, lists, bulk, ledger, feeds, siblings }: HttpDependencies,
  { opened: { embedded, ...opened }, sharedCounter }: { readonly opened: Opened; readonly sharedCounter: RateCounter },
): Promise<Services> => ({
  ...opened,
  ledger,
  database,
  lists,
  bulk,
  personalTexts: createPersonalTexts(database.sql, ledger),
  cursors: createCursors(await cursorSecret(database), () => ledger.world.now()),
  rateLimits: createRateLimits(config.rateLimits, {
    local: siblings?.counter ?? createLocalCounter(),
    shared: sharedCounter,
  }),
  concurrencyLimits: createConcurrencyLimits(config.concurrencyLimits, siblings?.slots),
  tail: createTail({
    database: streams,
    connections: poolSizesOf(siblings?.apiProcesses ?? 1).eventStreams,
    world: ledger.world,
  }),
  tenantStatuses: createTenantStatuses(ledger),
  apiKeysPerTenantMax: config.apiKeys.perTenantMax,
  exportBytesPerTenant: config.exportBytesPerTenant,
  subscriptionConfirmationMs: config.subscriptionConfirmationMs,
  subscriptionsPerTenantMax: config.subscriptionsPerTenantMax,
  topicWaitMs: config.kafka === undefined ? 0 : TOPIC_WAIT_MS,
  idempotencyRetentionMs: config.idempotencyRetentionMs,
  bodyDeadlineMs: BODY_DEADLINE_MS,
  needsFourEyes: config.needsFourEyes,
  operatorsTenant: config.operatorsTenant,
  publicUrl,
  schemaBaseUrl,
  issuer: { url: issuer, metadata: embedded?.metadata },
  metrics: siblings?.metrics ?? (() => metricsText({})),
  machine: async () => ({
    freeBytes: await freeBytesOn(config.dataDir),
    certificates: await readCertificates(config.certificateFiles),
  }),
  health: createHealth({ database, ledger, feeds, siblings }),
})

const openIssuer = (
  { dataDir, audience }: Config,
  { issuer, publicUrl, logger, siblings, addressOf }: HttpDependencies & { readonly addressOf: AddressOf },
  { revoke }: Revocations,
): Promise<Issuer> => {
  const onError = (error: unknown): void => logger.error({ error }, 'the embedded issuer failed')
  const port = siblings?.issuerPort
  const forward = port === undefined ? undefined : forwardTo({ port, issuer, addressOf })
  return createIssuer({ issuer, audience, resource: publicUrl, dataDir, revoke, addressOf, forward, onError })
}

type Verification = {
  readonly audience: string
  readonly workloadClaim: Config['workloadClaim']
  readonly revocations: Revocations
  readonly embedded: Issuer | undefined
  readonly apiKeys: ApiKeyVerifier | undefined
}

const openAuthentication = async (
  { issuer, logger }: HttpDependencies,
  { audience, workloadClaim, revocations, embedded, apiKeys }: Verification,
  cleanup: CleanupStack,
): Promise<Authenticate> => {
  const verifier = await openTokenVerifier({
    issuer,
    audience,
    ...(workloadClaim === undefined ? {} : { workloadClaim }),
    isRevoked: revocations.isRevoked,
    ...(embedded ? { fetchJwks: embedded.jwks } : {}),
    onKeysUnreachable: error => logger.warn({ error }, "cannot fetch the issuer's keys"),
  })
  cleanup.defer(async () => verifier.close())
  const onRefused: OnRefused = refused => logger.info(refused, 'credential refused')
  return createAuthentication({ tokens: verifier, apiKeys, onRefused })
}

/** Notes the callers that were seen with a valid credential. */
const noting = (
  authenticate: Authenticate,
  { database, ledger: { world }, logger }: HttpDependencies,
  cleanup: CleanupStack,
): Authenticate => {
  const onFailure = (error: unknown): void => logger.warn({ error }, 'cannot store recently seen callers; retrying')
  const seen = openCallersSeen({ database, world, onFailure })
  cleanup.defer(seen.close)
  return async (req, beforeWork) => {
    const principal = await authenticate(req, beforeWork)
    // A key lives for less than the period of confirmation, and its owner may have been removed.
    if (principal.kind !== 'api_key') seen.note(principal)
    return principal
  }
}

/** The secret of cursors: one for all instances, created by the first. */
const cursorSecret = async (database: Database): Promise<Uint8Array> => {
  const { sql } = database
  await createTables(database, 'cursorSecrets')
  const fresh = randomBytes(32).toString('base64')
  await sql('insert into cursor_secrets (id, secret) values (1, $1) on conflict (id) do nothing', [fresh])
  const [row] = await sql<{ secret: string }>('select secret from cursor_secrets where id = 1')
  return Buffer.from(row?.secret ?? fresh, 'base64')
}
