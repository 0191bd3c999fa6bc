import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { z } from 'zod'
import { CRASH_POINTS, type CrashPoint, RATE_POLICIES, type RateLimit, type RatePolicy } from './ports.ts'

/** The only reader of the environment. */

export const ROLES = ['api', 'projector', 'publisher', 'worker'] as const
export type Role = (typeof ROLES)[number]

export type KafkaConfig = {
  readonly brokers: readonly string[]
  readonly ssl: boolean
  readonly sasl?: {
    readonly mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512'
    readonly username: string
    readonly password: string
  }
}

export type Config = {
  readonly port: number
  readonly host: string
  readonly roles: readonly Role[]
  /** Absolute. Where the embedded parts keep their data. */
  readonly dataDir: string
  /** Each one that is set replaces the embedded part. */
  readonly eventStoreUrl?: string
  readonly databaseUrl?: string
  readonly kafka?: KafkaConfig
  readonly issuer?: string
  readonly audience: string
  /** Under which callers know the service, without a slash at its end; the address that it prints when absent. */
  readonly publicUrl?: string
  readonly idempotencyRetentionMs: number
  /** Whether who created an invoice of this amount, in minor units, may not be the one who approves it. */
  readonly needsFourEyes: (tenant: string, currency: string, amount: bigint) => boolean
  readonly rateLimits: Readonly<Record<RatePolicy, RateLimit>>
  /** `dev` keys are those of the embedded profile; in production there are none without a pepper. */
  readonly apiKeys: { readonly environment: 'dev' | 'live'; readonly pepper?: string }
  /** How many exports one caller may have under way. */
  readonly exportsAtOnceMax: number
  /** How often the facts of each topic are sealed in a manifest. */
  readonly manifestEveryMs: number
  /** Addresses and CIDR blocks of the proxies that are believed when they say where a request came from. */
  readonly trustedProxies: readonly string[]
  readonly logLevel: string
  /** Tests only: the process ends itself at this step of a payment. */
  readonly crashAt?: CrashPoint
}

/** The service does not start: one sentence that names the setting and the way out. */
export class ConfigError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'ConfigError'
  }
}

const HOUR_MS = 60 * 60 * 1000
const DAY_MS = 24 * HOUR_MS
const DURATION_UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: DAY_MS }

const duration = z
  .string()
  .regex(/^\d{1,6}[smhd]$/, 'a number with a unit, such as 30d, 12h, 15m or 90s')
  .transform(text => Number(text.slice(0, -1)) * (DURATION_UNITS_MS[text.slice(-1)] ?? 0))

const list = z.string().transform(text =>
  text
    .split(',')
    .map(item => item.trim())
    .filter(item => item !== ''),
)

const flag = z.enum(['true', 'false', '1', '0', '']).transform(text => text === 'true' || text === '1')

const FOUR_EYES = /^([a-z0-9][a-z0-9-]{0,62})=([A-Z]{3}):(\d{1,12})$/

/** `acme=USD:100000,acme=EUR:90000`: from this amount on, in minor units. */
const fourEyes = list.transform((rules, context) => {
  const amounts = new Map<string, bigint>()
  for (const rule of rules) {
    const [, tenant, currency, amount] = FOUR_EYES.exec(rule) ?? []
    if (amount === undefined) context.addIssue({ code: 'custom', message: `${rule} is not tenant=CURRENCY:amount` })
    else amounts.set(`${tenant} ${currency}`, BigInt(amount))
  }
  return amounts
})

const DEFAULT_RATE_LIMITS: Config['rateLimits'] = {
  default: { requests: 6_000, windowSeconds: 60 },
  payments: { requests: 600, windowSeconds: 60 },
  exports: { requests: 10, windowSeconds: 3_600 },
  auth_failures: { requests: 60, windowSeconds: 60 },
}
const RATE_LIMIT = new RegExp(`^(${RATE_POLICIES.join('|')})=([0-9]{1,9})/([1-9][0-9]{0,5})$`)

/** `payments=600/60,exports=10/3600`: requests in seconds. Those that are not named keep what they have. */
const rateLimits = list.transform((rules, context) => {
  const limits = { ...DEFAULT_RATE_LIMITS }
  for (const rule of rules) {
    const [, policy, requests, windowSeconds] = RATE_LIMIT.exec(rule) ?? []
    if (policy === undefined)
      context.addIssue({
        code: 'custom',
        message: `${rule} is not policy=requests/seconds (${RATE_POLICIES.join(', ')})`,
      })
    else limits[policy as RatePolicy] = { requests: Number(requests), windowSeconds: Number(windowSeconds) }
  }
  return limits
})

const PREFIX_MAX = { 4: 32, 6: 128 } as const

/** `10.0.0.7`, `10.0.0.0/8`, `2001:db8::/32`. */
const addressBlock = z.string().refine(
  text => {
    const [, address = '', prefix = '0'] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
    const version = isIP(address)
    return (version === 4 || version === 6) && Number(prefix) <= PREFIX_MAX[version]
  },
  { error: ({ input }) => `${String(input)} is no address and no CIDR block` },
)

/** A shorter pepper may be guessed by whoever has the hashes. */
const PEPPER_CHARS_MIN = 32

/** Paths are told from the root, so the address ends with the port. */
const publicUrl = z
  .url({ protocol: /^https?$/, error: 'an http or https URL, such as https://ledger.example' })
  .refine(text => `${new URL(text).origin}/` === new URL(text).href, 'without user, path, query and fragment')
  .transform(text => new URL(text).origin)

const environment = z.object({
  NODE_ENV: z.string().optional(),
  PORT: z
    .string()
    .regex(/^\d{1,5}$/, 'a port number')
    .transform(Number)
    .pipe(z.int().max(65_535))
    .default(8080),
  HOST: z.string().min(1).optional(),
  LEDGER_DATA_DIR: z.string().min(1).default('.data'),
  LEDGER_ROLES: list.pipe(z.array(z.enum(ROLES)).min(1)).default([...ROLES]),
  EVENTSTORE_URL: z.string().min(1).optional(),
  DATABASE_URL: z.string().min(1).optional(),
  KAFKA_BROKERS: list.pipe(z.array(z.string().regex(/^[^\s:]+:\d+$/, 'host:port')).min(1)).optional(),
  KAFKA_SSL: flag.default(false),
  KAFKA_SASL_MECHANISM: z.enum(['plain', 'scram-sha-256', 'scram-sha-512']).optional(),
  KAFKA_SASL_USERNAME: z.string().min(1).optional(),
  KAFKA_SASL_PASSWORD: z.string().min(1).optional(),
  PUBLIC_URL: publicUrl.optional(),
  OIDC_ISSUER: z.url().optional(),
  OIDC_AUDIENCE: z.string().min(1).optional(),
  IDEMPOTENCY_RETENTION: duration.default(30 * DAY_MS),
  APPROVAL_FOUR_EYES: fourEyes.default(new Map()),
  RATE_LIMITS: rateLimits.default(DEFAULT_RATE_LIMITS),
  API_KEY_PEPPER: z.string().min(PEPPER_CHARS_MIN, `at least ${PEPPER_CHARS_MIN} characters`).optional(),
  EXPORTS_AT_ONCE: z
    .string()
    .regex(/^\d{1,4}$/, 'a number')
    .transform(Number)
    .default(2),
  MANIFEST_EVERY: duration.refine(everyMs => everyMs > 0, { message: 'more than none' }).default(HOUR_MS),
  TRUSTED_PROXIES: list.pipe(z.array(addressBlock)).default([]),
  LOG_LEVEL: z.enum(['debug', 'info', 'warn', 'error', 'silent']).default('info'),
  CRASH_AT: z.enum(CRASH_POINTS).optional(),
})
type Environment = z.output<typeof environment>

/** Production has no embedded parts: a missing setting would silently start a toy. */
const NEEDED_IN_PRODUCTION = [
  'EVENTSTORE_URL',
  'DATABASE_URL',
  'KAFKA_BROKERS',
  'OIDC_ISSUER',
  'OIDC_AUDIENCE',
] as const satisfies readonly (keyof Environment)[]

const DEVELOPMENT_AUDIENCE = 'payment-ledger'

const parse = (env: NodeJS.ProcessEnv): Environment => {
  const parsed = environment.safeParse(env)
  if (parsed.success) return parsed.data
  const sentences = parsed.error.issues.map(({ path, message }) => `${path.join('.')} is not usable: ${message}.`)
  throw new ConfigError(sentences.join(' '))
}

const kafkaOf = (env: Environment): KafkaConfig | undefined => {
  const { KAFKA_BROKERS: brokers, KAFKA_SSL: ssl } = env
  if (brokers === undefined) return undefined
  const { KAFKA_SASL_MECHANISM: mechanism, KAFKA_SASL_USERNAME: username, KAFKA_SASL_PASSWORD: password } = env
  if (mechanism === undefined && username === undefined && password === undefined) return { brokers, ssl }
  if (mechanism === undefined || username === undefined || password === undefined)
    throw new ConfigError(
      'KAFKA_SASL_MECHANISM, KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD go together: set all three.',
    )
  return { brokers, ssl, sasl: { mechanism, username, password } }
}

/** Throws ConfigError. `env` is `process.env`, or a test's own. */
export const readConfig = (env: NodeJS.ProcessEnv = process.env): Config => {
  const given = parse(Object.fromEntries(Object.entries(env).filter(([, value]) => value !== '')))
  const production = given.NODE_ENV === 'production'
  const missing = NEEDED_IN_PRODUCTION.filter(name => given[name] === undefined)
  if (production && missing.length > 0)
    throw new ConfigError(
      `NODE_ENV is production and ${missing.join(', ')} ${missing.length > 1 ? 'are' : 'is'} not set: ` +
        'production never falls back to the embedded parts.',
    )
  if (given.OIDC_ISSUER !== undefined && given.OIDC_AUDIENCE === undefined)
    throw new ConfigError('OIDC_ISSUER is set and OIDC_AUDIENCE is not: without it any audience would do.')
  const kafka = kafkaOf(given)
  return {
    port: given.PORT,
    host: given.HOST ?? (production ? '0.0.0.0' : '127.0.0.1'),
    roles: given.LEDGER_ROLES,
    dataDir: resolve(given.LEDGER_DATA_DIR),
    audience: given.OIDC_AUDIENCE ?? DEVELOPMENT_AUDIENCE,
    idempotencyRetentionMs: given.IDEMPOTENCY_RETENTION,
    needsFourEyes: (tenant, currency, amount) => {
      const from = given.APPROVAL_FOUR_EYES.get(`${tenant} ${currency}`)
      return from !== undefined && amount >= from
    },
    rateLimits: given.RATE_LIMITS,
    apiKeys: {
      environment: production ? 'live' : 'dev',
      ...(given.API_KEY_PEPPER === undefined ? {} : { pepper: given.API_KEY_PEPPER }),
    },
    exportsAtOnceMax: given.EXPORTS_AT_ONCE,
    manifestEveryMs: given.MANIFEST_EVERY,
    trustedProxies: given.TRUSTED_PROXIES,
    logLevel: given.LOG_LEVEL,
    ...(given.PUBLIC_URL === undefined ? {} : { publicUrl: given.PUBLIC_URL }),
    ...(given.EVENTSTORE_URL === undefined ? {} : { eventStoreUrl: given.EVENTSTORE_URL }),
    ...(given.DATABASE_URL === undefined ? {} : { databaseUrl: given.DATABASE_URL }),
    ...(kafka === undefined ? {} : { kafka }),
    ...(given.OIDC_ISSUER === undefined ? {} : { issuer: given.OIDC_ISSUER }),
    ...(given.NODE_ENV === 'test' && given.CRASH_AT !== undefined ? { crashAt: given.CRASH_AT } : {}),
  }
}
