import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { readConfig } from '../../src/settings/config.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { selfSigned } from '../support/selfSigned.ts'

/** Settings that the service refuses, or names at its start, because they would have no effect or another than was meant. */

const SASL = { KAFKA_SASL_MECHANISM: 'plain', KAFKA_SASL_USERNAME: 'u', KAFKA_SASL_PASSWORD: 'hunter2' }

const folder = mkdtempSync(join(tmpdir(), 'settings-'))
const fileWith = (name: string, text: string): string => {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}
const { cert, key } = selfSigned()
const CERT_FILE = fileWith('cert.pem', cert)
const KEY_FILE = fileWith('key.pem', key)
const OTHER_KEY_FILE = fileWith('other.pem', selfSigned().key)
const KAFKA_TLS = {
  KAFKA_BROKERS: 'kafka:9092',
  KAFKA_SSL: 'true',
  KAFKA_SSL_CERT_FILE: CERT_FILE,
  KAFKA_SSL_KEY_FILE: KEY_FILE,
}

/** By the setting that the refusal names. */
const REFUSED: Readonly<Record<string, readonly Readonly<Record<string, string>>[]>> = {
  NODE_ENV: ['prod', 'Production', 'staging'].map(value => ({ NODE_ENV: value })),
  IDEMPOTENCY_RETENTION: ['0s', '0d', '59m'].map(value => ({ IDEMPOTENCY_RETENTION: value })),
  EVIDENCE_HEADS_EVERY: ['2d', '999999d'].map(value => ({ EVIDENCE_HEADS_EVERY: value })),
  SHUTDOWN_DELAY: ['61s', '5'].map(value => ({ SHUTDOWN_DELAY: value })),
  MANIFEST_EVERY: [{ MANIFEST_EVERY: '0h' }],
  SUBSCRIPTION_CONFIRMATION: [{ SUBSCRIPTION_CONFIRMATION: '0d' }],
  KAFKA_SSL_CA_FILE: [
    { KAFKA_BROKERS: 'kafka:9092', KAFKA_SSL_CA_FILE: '/ca.pem' },
    { KAFKA_BROKERS: 'kafka:9092', KAFKA_SSL: 'true', KAFKA_SSL_CA_FILE: '/nowhere/ca.pem' },
  ],
  KAFKA_SSL_CERT_FILE: [
    { KAFKA_BROKERS: 'kafka:9092', KAFKA_SSL_CERT_FILE: CERT_FILE, KAFKA_SSL_KEY_FILE: KEY_FILE },
    { ...KAFKA_TLS, KAFKA_SSL_CERT_FILE: '' },
    { ...KAFKA_TLS, KAFKA_SSL_CERT_FILE: KEY_FILE },
  ],
  KAFKA_SSL_KEY_FILE: [
    { ...KAFKA_TLS, KAFKA_SSL_KEY_FILE: '' },
    { ...KAFKA_TLS, KAFKA_SSL_KEY_FILE: CERT_FILE },
    { ...KAFKA_TLS, KAFKA_SSL_KEY_FILE: OTHER_KEY_FILE },
    { ...KAFKA_TLS, KAFKA_SSL_KEY_FILE: '/nowhere/key.pem' },
  ],
  OTEL_EXPORTER_OTLP_CERTIFICATE: [
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'https://collector:4318', OTEL_EXPORTER_OTLP_CERTIFICATE: '/nowhere/ca.pem' },
  ],
  KAFKA_BROKERS: [
    { KAFKA_SSL: 'true' },
    SASL,
    { KAFKA_SASL_PASSWORD: 'hunter2' },
    ...['kafka:99999', 'kafka:0', 'kafka:9092,other:70000'].map(value => ({ KAFKA_BROKERS: value })),
  ],
  TRUSTED_PROXIES: ['0.0.0.0/0', '::/0', '10.0.0.7,0.0.0.0/1', '2000::/3'].map(value => ({ TRUSTED_PROXIES: value })),
  DATABASE_URL: [
    'postgres://u:hunter2@db/ledger?sslmode=verify-full&sslrootcert=/nowhere/ca.pem',
    ...['mysql://u:hunter2@db/ledger', 'http://db/ledger', 'db/ledger', 'postgres://u:hunter2@db:99999/ledger'],
  ].map(value => ({ DATABASE_URL: value })),
  EVENTSTORE_URL: [
    'esdb://u:hunter2@store?tlsCAFile=/nowhere/ca.pem',
    ...['http://store:2113', 'kurrentdbs://store:2113', 'store:2113', 'esdb://u:hunter2@store:99999?tls=false'],
    'esdb://one:2113,two:99999',
    ...['tls=maybe', 'tlsVerifyCert=false', 'tlsCaFil=/ca.pem', 'tls'].map(one => `kdb://u:hunter2@store:2113?${one}`),
    'esdb://u:%hunter2@store:2113',
  ].map(value => ({ EVENTSTORE_URL: value })),
  OIDC_ISSUER: [{ OIDC_ISSUER: 'ftp://issuer.example', OIDC_AUDIENCE: 'ledger' }],
  PORT: [{ PORT: '99999' }],
  METRICS_PORT: [{ METRICS_PORT: '99999' }],
  RATE_LIMITS: ['payments=1/60,payments=2/60', 'payments=1/60=2'].map(value => ({ RATE_LIMITS: value })),
  CONCURRENCY_LIMITS: [{ CONCURRENCY_LIMITS: 'streams=1,streams=2' }],
  APPROVAL_FOUR_EYES: [{ APPROVAL_FOUR_EYES: 'acme=USD:1,acme=USD:2' }],
}

const KURRENT = [
  'kurrentdb://u:p%40@store:2113',
  'kurrentdb+discover://store',
  'kdb://a,b:2113',
  'kdb+discover://store',
]

const ACCEPTED: readonly Readonly<Record<string, string>>[] = [
  ...['production', 'development', 'test', ''].map(NODE_ENV => (NODE_ENV === 'production' ? {} : { NODE_ENV })),
  ...['1h', '30d', ''].map(IDEMPOTENCY_RETENTION => ({ IDEMPOTENCY_RETENTION })),
  ...['0s', '1d'].map(EVIDENCE_HEADS_EVERY => ({ EVIDENCE_HEADS_EVERY })),
  ...['0s', '60s'].map(SHUTDOWN_DELAY => ({ SHUTDOWN_DELAY })),
  ...['false', ''].map(KAFKA_SSL => ({ KAFKA_SSL })),
  { KAFKA_BROKERS: 'one:9092,two:65535', KAFKA_SSL: 'true', ...SASL },
  KAFKA_TLS,
  ...['10.0.0.0/8', '192.0.2.7', 'fc00::/7', '::1'].map(TRUSTED_PROXIES => ({ TRUSTED_PROXIES })),
  ...[
    'postgres://u:p@db:5432/ledger?sslmode=require',
    'postgresql://db/ledger',
    'postgres://u@/ledger?host=/run/postgresql',
    '/run/postgresql ledger',
    'socket:/run/postgresql?db=ledger',
  ].map(DATABASE_URL => ({ DATABASE_URL })),
  ...['esdb://u:99999@store:2113?tls=true', 'esdb://one:2113,two:2113,three', 'esdb+discover://store', ...KURRENT].map(
    EVENTSTORE_URL => ({ EVENTSTORE_URL }),
  ),
]

describe('the settings', () => {
  after(() => rmSync(folder, { recursive: true }))

  for (const [setting, environments] of Object.entries(REFUSED))
    it(`refuse a value of ${setting} that would have no effect, or another than was meant`, () => {
      for (const env of environments) {
        const read = (): unknown => readConfig(env)
        expect(read, JSON.stringify(env)).to.throw(StartupError, setting)
        expect(read).not.to.throw(/hunter2/)
      }
    })

  it('accept the values beside those', () => {
    for (const env of ACCEPTED) expect(() => readConfig(env), JSON.stringify(env)).not.to.throw()
  })

  const warnings = (env: Readonly<Record<string, string>>): readonly string[] => readConfig(env).unknownSettings

  it('name what begins like one of them and is none', () => {
    for (const name of ['LEDGER_THREADS', 'EVIDENCE_FOLDER', 'KAFKA_SASL_USER', 'OIDC_CLIENT_ID'])
      expect(warnings({ [name]: 'x' })).to.deep.equal([`${name} is not a setting of the service and has no effect.`])
  })

  it('name what differs from one of them by a slip, unless that one is set', () => {
    for (const [slip, meant] of Object.entries({
      DATABSE_URL: 'DATABASE_URL',
      EVENTSTORE_URI: 'EVENTSTORE_URL',
      TRUSTED_PROXYS: 'TRUSTED_PROXIES',
      RATE_LIMIT: 'RATE_LIMITS',
      LOGLEVEL: 'LOG_LEVEL',
      NODE_NEV: 'NODE_ENV',
      PUBLIC_ULR: 'PUBLIC_URL',
    })) {
      const warning = `${slip} is not a setting of the service and has no effect. Did you mean ${meant}?`
      expect(warnings({ [slip]: 'x' }), slip).to.deep.equal([warning])
      if (meant === 'LOG_LEVEL') expect(warnings({ [slip]: 'x', LOG_LEVEL: 'info' })).to.deep.equal([])
    }
  })

  it('name no variable of the system or of another program', () => {
    const others = ['PATH', 'HOME', 'HOSTNAME', 'USER', 'SHELL', 'TERM', 'LANG', 'PWD', 'NODE_OPTIONS', 'NODE_PATH']
    const servers = ['KAFKA_HOME', 'KAFKA_OPTS', 'EVENTSTORE_INSECURE', 'EVENTSTORE_DB', 'POSTGRES_PASSWORD', 'PGHOST']
    const known = ['LEDGER_TOKEN', 'LEDGER_ROLES', 'OTEL_SERVICE_NAME', 'LOG_LEVEL', 'CRASH_AT']
    const values = { LEDGER_ROLES: 'api', LOG_LEVEL: 'info', CRASH_AT: '' }
    const env = Object.fromEntries([...others, ...servers, ...known].map(name => [name, 'x']))
    expect(warnings({ ...env, ...values })).to.deep.equal([])
  })
})
