import { fileSettingOf, SECRETS } from '../../../src/settings/secretFiles.ts'
import { SETTINGS, unknownSettingsIn } from '../../../src/settings/config.ts'
import { INSECURITIES, type InsecurityName, warningOf } from '../../../src/settings/insecureSettings.ts'
import { withoutSecrets } from '../../../src/lib/redaction.ts'
import { TOKEN_SETTING } from '../apiClient.ts'
import { type Check, finding, notUsed, ok } from './finding.ts'

/** The settings whose values may be seen; any other may have a secret, also one of a later version. */
export const SHOWN: ReadonlySet<string> = new Set([
  ...['NODE_ENV', 'PORT', 'HOST', 'LEDGER_DATA_DIR', 'LEDGER_PROCESSES', 'LEDGER_ROLES', 'PUBLIC_URL', 'LOG_LEVEL'],
  ...['EVENTSTORE_URL', 'DATABASE_URL', 'METRICS_HOST', 'METRICS_PORT', 'OIDC_ISSUER', 'OIDC_AUDIENCE'],
  ...['OIDC_WORKLOAD_CLAIM', 'CONSOLE_CLIENT_ID', 'CONSOLE_SCOPE', 'CONSOLE_ENVIRONMENT', 'KAFKA_BROKERS'],
  ...[
    'KAFKA_SSL',
    'KAFKA_SSL_CA_FILE',
    'KAFKA_SSL_CERT_FILE',
    'KAFKA_SSL_KEY_FILE',
    'KAFKA_SASL_MECHANISM',
    'KAFKA_SASL_USERNAME',
    'TRUSTED_PROXIES',
    'CRASH_AT',
  ],
  ...['IDEMPOTENCY_RETENTION', 'APPROVAL_FOUR_EYES', 'RATE_LIMITS', 'API_KEYS_PER_TENANT', 'OPERATORS_TENANT'],
  ...['ALLOW_INSECURE', 'CONCURRENCY_LIMITS', 'SUBSCRIPTIONS_PER_TENANT', 'SUBSCRIPTION_CONFIRMATION'],
  ...['SUBSCRIPTION_TOPIC_BYTES', 'TENANT_BYTES_PER_DAY', 'EXPORT_BYTES_PER_TENANT', 'MANIFEST_EVERY'],
  ...['EVIDENCE_HEADS_FILE', 'EVIDENCE_HEADS_EVERY', 'SHUTDOWN_DELAY'],
  ...SECRETS.map(fileSettingOf),
])
const NAMES: ReadonlySet<string> = new Set([...SETTINGS, TOKEN_SETTING])

export type Configuration = Readonly<Record<string, string>>

const shown = (name: string, value: string): string => (SHOWN.has(name) ? withoutSecrets(value) : '…')

/** Every setting that has a value, by its name; a secret is an ellipsis. */
export const readConfiguration = (env: NodeJS.ProcessEnv): Configuration =>
  Object.fromEntries(
    Object.entries(env)
      .flatMap(([name, value = '']) => (NAMES.has(name) && value !== '' ? [[name, shown(name, value)] as const] : []))
      .toSorted(([a], [b]) => (a < b ? -1 : 1)),
  )

export const checkConfiguration = (env: NodeJS.ProcessEnv): Check => {
  const unknown = unknownSettingsIn(env)
  const settings = Object.entries(readConfiguration(env)).map(([name, value]) => `${name}=${value}`)
  if (unknown.length === 0) return ok('configuration', settings.length === 0 ? 'all defaults' : settings.join(' '))
  return finding(
    'configuration',
    unknown.join(' '),
    'Correct the name (scripts/ledger/OPERATING.md has them all), or remove it: it has no effect.',
  )
}

/** Without the policy, whoever creates an invoice may approve it, which an operator should know. */
export const checkApproval = (env: NodeJS.ProcessEnv): Check => {
  const amounts = readConfiguration(env)['APPROVAL_FOUR_EYES']
  return amounts === undefined
    ? notUsed(
        'approval',
        'four-eyes approval is off: users may approve invoices that they created (APPROVAL_FOUR_EYES)',
      )
    : ok('approval', `four eyes from ${amounts}`)
}

/** A finding for each exception of ALLOW_INSECURE that is used. */
export const checkExceptions = (names: readonly InsecurityName[]): readonly Check[] =>
  names.map(name =>
    finding(
      'insecure settings',
      warningOf(name),
      `${INSECURITIES[name].remedy}, and remove ${name} from ALLOW_INSECURE.`,
    ),
  )
