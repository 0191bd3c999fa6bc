import { availableParallelism } from 'node:os'
import { join, resolve } from 'node:path'
import { defaultProcesses, type KafkaConfig, kafkaOf } from './values.ts'
import type { CrashPoint } from '../lib/crashPoints.ts'
import { type NeedsFourEyes, needsFourEyesFrom } from '../identity/approvalPolicy.ts'
import { type InsecurityName, usedExceptions } from './insecureSettings.ts'
import type { ConcurrencyLimitSettings, RateLimitSettings } from './limits.ts'
import { type Environment, environment, type Role, SETTINGS } from './environment.ts'
import { DEVELOPMENT_OPERATORS } from '../identity/principal.ts'
import { type CertificateFile, certificateFilesOf, certificatesIn } from './certificates.ts'
import { type Collector, collectorFilesIn, collectorsIn } from './collectors.ts'
import { fileSettingOf, withSecretFiles } from './secretFiles.ts'
import { StartupError } from '../lib/startupError.ts'
import { namesLikeSettings } from './unknownSettings.ts'

/** The configuration, from the environment, which only telemetry.ts and the launcher of Postgres read besides. */

export type { KafkaConfig, Role }
export { SETTINGS }

export type Config = {
  readonly port: number
  readonly host: string
  readonly roles: readonly Role[]
  /** The number of processes of the service; 1: everything is in one process. */
  readonly processes: number
  /** The absolute path of the data of embedded dependencies. */
  readonly dataDir: string
  /** Each of these settings replaces an embedded dependency. */
  readonly eventStoreUrl?: string
  readonly databaseUrl?: string
  readonly kafka?: KafkaConfig
  readonly issuer?: string
  readonly audience: string
  /** The claim by which OIDC_ISSUER marks tokens of workloads. */
  readonly workloadClaim?: { readonly name: string; readonly value: string }
  /** The page /console. */
  readonly console: {
    /** Its client at the issuer; absent where an outside issuer has none, and nobody can log in. */
    readonly clientId?: string
    /** The scopes that it asks for, separated by spaces; all of the service's own when absent. */
    readonly scope?: string
    /** The name of the installation that its pages show. */
    readonly environment: string
    readonly isProduction: boolean
  }
  /** The base URL for callers, without a slash at its end. The default is the address that the service prints. */
  readonly publicUrl?: string
  readonly idempotencyRetentionMs: number
  readonly needsFourEyes: NeedsFourEyes
  readonly rateLimits: RateLimitSettings
  readonly concurrencyLimits: ConcurrencyLimitSettings
  /** `dev` outside production. In production keys need a pepper. */
  readonly apiKeys: {
    readonly environment: 'dev' | 'live'
    readonly pepper?: string
    /** The number of keys of a tenant that are neither revoked nor expired. */
    readonly perTenantMax: number
  }
  /** Its callers may operate read models over HTTP, with the scope `projections:operate`. */
  readonly operatorsTenant?: string
  readonly subscriptionsPerTenantMax: number
  readonly tenantBytesPerDay: number
  readonly exportBytesPerTenant: number
  readonly subscriptionTopicBytes: number
  readonly subscriptionConfirmationMs: number
  /** The period after which the facts of each topic are sealed in a manifest. */
  readonly manifestEveryMs: number
  readonly evidence: {
    /** The Ed25519 key that signs heads, PKCS#8 in PEM or base64; outside production a file of the data directory. */
    readonly signingKey?: string
    readonly inProduction: boolean
    /** The absolute path of the file that heads are appended to. */
    readonly headsFile: string
    /** The least time between two heads. */
    readonly headsEveryMs: number
  }
  /** How long the service continues to serve after the signal to end, while it reports that it is not ready. */
  readonly shutdownDelayMs: number
  /** Addresses and CIDR blocks of the proxies whose X-Forwarded-For is trusted. */
  readonly trustedProxies: readonly string[]
  /** The files of certificates that the settings name. */
  readonly certificateFiles: readonly CertificateFile[]
  /** Where OpenTelemetry sends traces and metrics. */
  readonly telemetry: readonly Collector[]
  readonly logLevel: string
  /** The exceptions of ALLOW_INSECURE that are in use: production would refuse to start without them. */
  readonly insecure: readonly InsecurityName[]
  /** Subscriptions with a principal are not delivered to a broker without an authorizer. */
  readonly needsAuthorizer: boolean
  /** The operators' port, with the metrics; port 0 is any, and absent is none. */
  readonly metrics?: {
    readonly host: string
    readonly port: number
    /** The port was not chosen: if it is taken, any other will do. */
    readonly isDefault: boolean
  }
  /** A sentence for each variable whose name resembles a setting and is none. */
  readonly unknownSettings: readonly string[]
  /** For tests: the process kills itself at this step of a payment. */
  readonly crashAt?: CrashPoint
}

/** In production no embedded dependency may take the place of a missing setting. */
const NEEDED_IN_PRODUCTION = [
  'EVENTSTORE_URL',
  'DATABASE_URL',
  'KAFKA_BROKERS',
  'OIDC_ISSUER',
  'OIDC_AUDIENCE',
] as const satisfies readonly (keyof Environment)[]

/** The command line reads it. */
const TOKENS_OF_COMMANDS = ['LEDGER_TOKEN', fileSettingOf('LEDGER_TOKEN')]

/** A sentence for each variable whose name resembles a setting and is none, so it has no effect. */
export const unknownSettingsIn = (env: NodeJS.ProcessEnv): readonly string[] =>
  namesLikeSettings(env, new Set([...SETTINGS, ...TOKENS_OF_COMMANDS])).map(
    ({ name, meant }) =>
      `${name} is not a setting of the service and has no effect.${meant === undefined ? '' : ` Did you mean ${meant}?`}`,
  )

const DEVELOPMENT_AUDIENCE = 'payment-ledger'

const parse = (own: NodeJS.ProcessEnv): Environment => {
  const env = withSecretFiles(own)
  const parsed = environment.safeParse(env)
  if (parsed.success) return parsed.data
  const sentences = parsed.error.issues.map(({ path: [name = ''], message }) => {
    const setting = String(name)
    const value = MAY_BE_SECRET.test(setting) ? '' : `=${shortened(env[setting] ?? '')}`
    // An unset setting is not examined, so this one is in its file.
    const path = own[setting] === undefined ? own[fileSettingOf(setting)] : undefined
    const source = path === undefined ? `${setting}${value}` : `${setting} in ${fileSettingOf(setting)}=${path}`
    return `${source} is not valid: ${message}.`
  })
  throw new StartupError([...new Set(sentences)].join(' '))
}

/** Settings whose value is not printed: URLs contain passwords. */
const MAY_BE_SECRET = /_(URL|PEPPER|KEY|USERNAME|PASSWORD)$/
const SHOWN_CHARS_MAX = 100

const shortened = (value: string): string =>
  value.length <= SHOWN_CHARS_MAX ? value : `${value.slice(0, SHOWN_CHARS_MAX)}…`

/** API processes share a port; more processes of the feeds, which have one lease, would have no work. */
const processesOf = (env: Environment): number => {
  const { LEDGER_ROLES: roles, LEDGER_PROCESSES: processes, EVENTSTORE_URL: store, DATABASE_URL: database } = env
  if (!roles.includes('api')) return 1
  const stores = store === undefined || database === undefined ? 'embedded' : 'apart'
  return processes ?? defaultProcesses(availableParallelism(), { stores, hasFeeds: roles.length > 1 })
}

/** The port of Prometheus exporters of OpenTelemetry. */
const DEFAULT_METRICS_PORT = 9464

/** With PORT=0 the service takes any port for the metrics too. */
const metricsOf = ({ METRICS_PORT: port, METRICS_HOST: host, PORT }: Environment): Pick<Config, 'metrics'> => {
  if (port === 'off') return {}
  if (port !== undefined) return { metrics: { host, port, isDefault: false } }
  return { metrics: { host, port: PORT === 0 ? 0 : DEFAULT_METRICS_PORT, isDefault: true } }
}

/** The client of the embedded issuer for the console (embedded/issuer/consoleClient.ts). */
const EMBEDDED_CLIENT = 'console'

/** The embedded issuer has a user of the operators; without that, nobody is one unless a setting says who. */
const operatorsOf = ({ NODE_ENV, OIDC_ISSUER, OPERATORS_TENANT }: Environment): Pick<Config, 'operatorsTenant'> => {
  const isEmbedded = NODE_ENV !== 'production' && OIDC_ISSUER === undefined
  const operatorsTenant = OPERATORS_TENANT ?? (isEmbedded ? DEVELOPMENT_OPERATORS : undefined)
  return operatorsTenant === undefined ? {} : { operatorsTenant }
}

const consoleOf = (env: Environment): Config['console'] => {
  const {
    NODE_ENV = 'development',
    OIDC_ISSUER,
    CONSOLE_SCOPE: scope,
    CONSOLE_ENVIRONMENT: environment = NODE_ENV,
  } = env
  const clientId = OIDC_ISSUER === undefined ? EMBEDDED_CLIENT : env.CONSOLE_CLIENT_ID
  return {
    environment,
    isProduction: NODE_ENV === 'production',
    ...(clientId === undefined ? {} : { clientId }),
    ...(scope === undefined ? {} : { scope }),
  }
}

/** Throws a StartupError that names the setting. Long because it maps every setting. */
export const readConfig = (env: NodeJS.ProcessEnv = process.env): Config => {
  const settings = parse(Object.fromEntries(Object.entries(env).filter(([, value]) => value !== '')))
  const production = settings.NODE_ENV === 'production'
  const missing = NEEDED_IN_PRODUCTION.filter(name => settings[name] === undefined)
  if (production && missing.length > 0)
    throw new StartupError(
      `NODE_ENV is production and ${missing.join(', ')} ${missing.length > 1 ? 'are' : 'is'} not set: ` +
        'production never falls back to the embedded services.',
    )
  if (settings.OIDC_ISSUER !== undefined && settings.OIDC_AUDIENCE === undefined)
    throw new StartupError('OIDC_ISSUER is set and OIDC_AUDIENCE is not: without it any audience would be accepted.')
  if (settings.OIDC_WORKLOAD_CLAIM !== undefined && settings.OIDC_ISSUER === undefined)
    throw new StartupError('OIDC_WORKLOAD_CLAIM is set and OIDC_ISSUER is not: the embedded issuer has no such claim.')
  if (production && settings.OIDC_ISSUER?.toLowerCase().startsWith('http:'))
    throw new StartupError(
      'OIDC_ISSUER is plain http, and NODE_ENV is production: an attacker on the network could substitute signing keys. Use https.',
    )
  const kafka = kafkaOf(settings)
  const certificateFiles = certificateFilesOf(settings)
  for (const { name, path } of certificateFiles) certificatesIn(name, path)
  return {
    port: settings.PORT,
    host: settings.HOST ?? (production ? '0.0.0.0' : '127.0.0.1'),
    roles: settings.LEDGER_ROLES,
    processes: processesOf(settings),
    dataDir: resolve(settings.LEDGER_DATA_DIR),
    audience: settings.OIDC_AUDIENCE ?? DEVELOPMENT_AUDIENCE,
    console: consoleOf(settings),
    idempotencyRetentionMs: settings.IDEMPOTENCY_RETENTION,
    needsFourEyes: needsFourEyesFrom(settings.APPROVAL_FOUR_EYES),
    rateLimits: settings.RATE_LIMITS,
    concurrencyLimits: settings.CONCURRENCY_LIMITS,
    apiKeys: {
      environment: production ? 'live' : 'dev',
      perTenantMax: settings.API_KEYS_PER_TENANT,
      ...(settings.API_KEY_PEPPER === undefined ? {} : { pepper: settings.API_KEY_PEPPER }),
    },
    ...operatorsOf(settings),
    subscriptionsPerTenantMax: settings.SUBSCRIPTIONS_PER_TENANT,
    tenantBytesPerDay: settings.TENANT_BYTES_PER_DAY,
    exportBytesPerTenant: settings.EXPORT_BYTES_PER_TENANT,
    subscriptionTopicBytes: settings.SUBSCRIPTION_TOPIC_BYTES,
    subscriptionConfirmationMs: settings.SUBSCRIPTION_CONFIRMATION,
    manifestEveryMs: settings.MANIFEST_EVERY,
    evidence: {
      ...(settings.EVIDENCE_SIGNING_KEY === undefined ? {} : { signingKey: settings.EVIDENCE_SIGNING_KEY }),
      inProduction: production,
      headsFile: resolve(settings.EVIDENCE_HEADS_FILE ?? join(settings.LEDGER_DATA_DIR, 'evidence', 'heads.jsonl')),
      headsEveryMs: settings.EVIDENCE_HEADS_EVERY,
    },
    shutdownDelayMs: settings.SHUTDOWN_DELAY,
    trustedProxies: settings.TRUSTED_PROXIES,
    certificateFiles: [...certificateFiles, ...collectorFilesIn(env)],
    telemetry: collectorsIn(env),
    logLevel: settings.LOG_LEVEL,
    needsAuthorizer: production && !settings.ALLOW_INSECURE.includes('kafka-no-authorizer'),
    unknownSettings: unknownSettingsIn(env),
    insecure: production ? usedExceptions(settings, settings.ALLOW_INSECURE) : [],
    ...metricsOf(settings),
    ...(settings.PUBLIC_URL === undefined ? {} : { publicUrl: settings.PUBLIC_URL }),
    ...(settings.EVENTSTORE_URL === undefined ? {} : { eventStoreUrl: settings.EVENTSTORE_URL }),
    ...(settings.DATABASE_URL === undefined ? {} : { databaseUrl: settings.DATABASE_URL }),
    ...(kafka === undefined ? {} : { kafka }),
    ...(settings.OIDC_ISSUER === undefined ? {} : { issuer: settings.OIDC_ISSUER }),
    ...(settings.OIDC_WORKLOAD_CLAIM === undefined ? {} : { workloadClaim: settings.OIDC_WORKLOAD_CLAIM }),
    ...(settings.NODE_ENV === 'test' && settings.CRASH_AT !== undefined ? { crashAt: settings.CRASH_AT } : {}),
  }
}
