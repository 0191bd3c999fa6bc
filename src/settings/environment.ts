import { z } from 'zod'
import { DEFAULT_IDEMPOTENCY_RETENTION_MS } from './retention.ts'
import {
  addressBlock,
  approvalAmounts,
  broker,
  byteSize,
  concurrencyLimits,
  count,
  databaseUrl,
  duration,
  durationFrom,
  eventStoreUrl,
  flag,
  issuerUrl,
  list,
  oneOf,
  pepper,
  portNumber,
  portOrOff,
  processCount,
  publicUrl,
  rateLimits,
  workloadClaim,
} from './values.ts'
import { CRASH_POINTS } from '../lib/crashPoints.ts'
import { INSECURITY_NAMES } from './insecureSettings.ts'
import { DEFAULT_BYTES } from './limits.ts'
import { fileSettingOf, SECRETS } from './secretFiles.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../lib/time.ts'

export const ROLES = ['api', 'projector', 'publisher', 'worker'] as const
export type Role = (typeof ROLES)[number]

const DEFAULT_HEADS_EVERY_MS = 10_000
const DEFAULT_SUBSCRIPTION_CONFIRMATION_MS = 90 * DAY_MS

export const DEFAULT_DATA_DIR = '.data'

export const environment = z.object({
  NODE_ENV: oneOf(['production', 'development', 'test']).optional(),
  PORT: portNumber.default(8080),
  HOST: z.string().min(1).optional(),
  LEDGER_DATA_DIR: z.string().min(1).default(DEFAULT_DATA_DIR),
  LEDGER_PROCESSES: processCount.optional(),
  LEDGER_ROLES: list.pipe(z.array(oneOf(ROLES)).min(1)).default([...ROLES]),
  EVENTSTORE_URL: eventStoreUrl.optional(),
  DATABASE_URL: databaseUrl.optional(),
  KAFKA_BROKERS: list.pipe(z.array(broker).min(1)).optional(),
  KAFKA_SSL: flag.default(false),
  KAFKA_SSL_CA_FILE: z.string().min(1).optional(),
  KAFKA_SSL_CERT_FILE: z.string().min(1).optional(),
  KAFKA_SSL_KEY_FILE: z.string().min(1).optional(),
  KAFKA_SASL_MECHANISM: oneOf(['plain', 'scram-sha-256', 'scram-sha-512']).optional(),
  KAFKA_SASL_USERNAME: z.string().min(1).optional(),
  KAFKA_SASL_PASSWORD: z.string().min(1).optional(),
  METRICS_HOST: z.string().min(1).default('127.0.0.1'),
  METRICS_PORT: portOrOff.optional(),
  PUBLIC_URL: publicUrl.optional(),
  OIDC_ISSUER: issuerUrl.optional(),
  OIDC_AUDIENCE: z.string().min(1).optional(),
  OIDC_WORKLOAD_CLAIM: workloadClaim.optional(),
  CONSOLE_CLIENT_ID: z
    .string()
    .regex(/^[\x21-\x7e]{1,255}$/, 'the id of a client, without spaces')
    .optional(),
  CONSOLE_SCOPE: z
    .string()
    .regex(/^[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*$/, 'scopes, separated by single spaces')
    .optional(),
  CONSOLE_ENVIRONMENT: z
    .string()
    .regex(/^[\w .-]{1,30}$/, 'a name of at most 30 letters, digits, spaces, dots, underscores and hyphens')
    .optional(),
  IDEMPOTENCY_RETENTION: durationFrom(HOUR_MS, '1h').default(DEFAULT_IDEMPOTENCY_RETENTION_MS),
  APPROVAL_FOUR_EYES: approvalAmounts.default(new Map()),
  RATE_LIMITS: rateLimits,
  CONCURRENCY_LIMITS: concurrencyLimits,
  API_KEY_PEPPER: pepper.optional(),
  API_KEYS_PER_TENANT: count.default(100),
  OPERATORS_TENANT: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'expected the name of a tenant: a-z, 0-9 and -')
    .optional(),
  SUBSCRIPTIONS_PER_TENANT: count.default(50),
  TENANT_BYTES_PER_DAY: byteSize.default(DEFAULT_BYTES.tenantPerDay),
  EXPORT_BYTES_PER_TENANT: byteSize.default(DEFAULT_BYTES.exportsOfTenant),
  SUBSCRIPTION_TOPIC_BYTES: byteSize.default(DEFAULT_BYTES.subscriptionTopic),
  SUBSCRIPTION_CONFIRMATION: durationFrom(SECOND_MS, '1s').default(DEFAULT_SUBSCRIPTION_CONFIRMATION_MS),
  MANIFEST_EVERY: durationFrom(SECOND_MS, '1s').default(HOUR_MS),
  EVIDENCE_SIGNING_KEY: z.string().min(1).optional(),
  EVIDENCE_HEADS_FILE: z.string().min(1).optional(),
  // A timer of Node ends at once after 24 days.
  EVIDENCE_HEADS_EVERY: duration
    .refine(everyMs => everyMs <= 24 * HOUR_MS, 'expected at most 1d')
    .default(DEFAULT_HEADS_EVERY_MS),
  SHUTDOWN_DELAY: duration.refine(delayMs => delayMs <= MINUTE_MS, 'expected at most 60s').default(0),
  TRUSTED_PROXIES: list.pipe(z.array(addressBlock)).default([]),
  ALLOW_INSECURE: list.pipe(z.array(oneOf(INSECURITY_NAMES))).default([]),
  LOG_LEVEL: oneOf(['debug', 'info', 'warn', 'error', 'silent']).default('info'),
  CRASH_AT: oneOf(CRASH_POINTS).optional(),
})
export type Environment = z.output<typeof environment>

export const SETTINGS: readonly string[] = [...Object.keys(environment.shape), ...SECRETS.map(fileSettingOf)]
