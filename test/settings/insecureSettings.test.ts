import { expect } from 'chai'
import { readConfig } from '../../src/settings/config.ts'
import { checkExceptions } from '../../scripts/ledger/doctor/configuration.ts'
import { INSECURITY_NAMES } from '../../src/settings/insecureSettings.ts'
import { StartupError } from '../../src/lib/startupError.ts'

const SECURE = {
  NODE_ENV: 'production',
  EVENTSTORE_URL: 'esdb://store:2113',
  DATABASE_URL: 'postgres://postgres/ledger?sslmode=verify-full',
  KAFKA_BROKERS: 'kafka:9092',
  KAFKA_SSL: 'true',
  PUBLIC_URL: 'https://ledger.example',
  OIDC_ISSUER: 'https://issuer.example',
  OIDC_AUDIENCE: 'payment-ledger',
}
const SASL = { KAFKA_SASL_USERNAME: 'u', KAFKA_SASL_PASSWORD: 'p' }
const database = (url: string) => ({ DATABASE_URL: url })
const store = (url: string) => ({ EVENTSTORE_URL: url })

/** By the name of the exception: the setting that the refusal names, and the environments that it refuses or accepts. */
const CASES: Readonly<
  Record<string, { setting: string; refused: Record<string, string>[]; accepted: Record<string, string>[] }>
> = {
  'kafka-plaintext': {
    setting: 'KAFKA_SSL',
    refused: [
      { KAFKA_SSL: '' },
      { KAFKA_SSL: 'false', KAFKA_SASL_MECHANISM: 'plain', ...SASL },
      { KAFKA_SSL: '', KAFKA_BROKERS: 'localhost:9092,kafka:9092' },
      { KAFKA_SSL: '', KAFKA_BROKERS: '127.0.0.1.example:9092' },
    ],
    accepted: [
      { KAFKA_SASL_MECHANISM: 'plain', ...SASL },
      { KAFKA_SSL: '', KAFKA_BROKERS: 'localhost:9092,127.9.0.1:9092' },
    ],
  },
  'postgres-plaintext': {
    setting: 'DATABASE_URL',
    refused: [
      ...['', '?sslmode=disable', '?sslmode=prefer', '?sslmode=no-verify', '?sslmode=verify-full&sslmode=disable'],
      ...['?uselibpqcompat=true&sslmode=require', '?sslmode='],
    ]
      .map(query => database(`postgres://u:p@db/ledger${query}`))
      .concat(database('postgres://u:p@localhost/ledger?host=db')),
    accepted: [
      ...['require', 'verify-ca', 'verify-full'].map(mode => database(`postgres://u:p@db/ledger?sslmode=${mode}`)),
      ...['localhost', '127.0.0.1:5432', '[::1]:5432'].map(host => database(`postgres://u:p@${host}/ledger`)),
      ...['/run/postgresql ledger', 'postgres://u@/ledger?host=/run/postgresql', 'socket:/run/x?db=y'].map(database),
    ],
  },
  'eventstore-plaintext': {
    setting: 'EVENTSTORE_URL',
    refused: [
      'esdb://store:2113?tls=false',
      'esdb://u:p@store:2113/?nodePreference=leader&TLS=false',
      'esdb://store?tls=true&tls=false',
      'esdb+discover://localhost?tls=false',
      'kurrentdb://store:2113?tls=false',
      'kdb+discover://localhost?tls=false',
      'esdb://127.0.0.1:2113,store:2113?tls=false',
    ].map(store),
    accepted: [
      'esdb://store?tls=true',
      'kurrentdb://store',
      'kdb://localhost:2113?tls=false',
      'esdb://localhost:2113?tls=false',
      'esdb://u:p@127.0.0.1?tls=false',
    ].map(store),
  },
  'public-url-http': {
    setting: 'PUBLIC_URL',
    refused: [{ PUBLIC_URL: 'http://ledger.example' }, { PUBLIC_URL: 'http://localhost.example' }],
    accepted: ['http://localhost:8080', 'http://127.0.0.1', 'http://[::1]:80'].map(url => ({ PUBLIC_URL: url })),
  },
}

describe('insecure settings in production', () => {
  it('are none where every connection is encrypted', () => {
    expect(readConfig(SECURE).insecure).to.deep.equal([])
  })

  for (const [name, { setting, refused, accepted }] of Object.entries(CASES)) {
    it(`prevent the start unless ALLOW_INSECURE names ${name}`, () => {
      const others = INSECURITY_NAMES.filter(other => other !== name && other !== 'kafka-no-authorizer').join()
      for (const env of refused) {
        const refusal = new RegExp(`${setting}.*add ${name} to ALLOW_INSECURE`)
        const label = JSON.stringify(env)
        for (const allowed of ['', others])
          expect(() => readConfig({ ...SECURE, ...env, ALLOW_INSECURE: allowed }), label).to.throw(
            StartupError,
            refusal,
          )
        expect(readConfig({ ...SECURE, ...env, ALLOW_INSECURE: name }).insecure, label).to.deep.equal([name])
        expect(readConfig({ ...SECURE, ...env, NODE_ENV: '' }).insecure, label).to.deep.equal([])
      }
    })

    it(`do not include what needs no ${name}`, () => {
      for (const env of accepted) {
        expect(readConfig({ ...SECURE, ...env }).insecure, JSON.stringify(env)).to.deep.equal([])
        expect(readConfig({ ...SECURE, ...env, ALLOW_INSECURE: name }).insecure).to.deep.equal([])
      }
    })
  }

  it('are all named by one refusal, and no refusal quotes a password', () => {
    const env = { ...SECURE, KAFKA_SSL: '', DATABASE_URL: 'postgres://u:hunter2@db/ledger' }
    expect(() => readConfig(env)).to.throw(StartupError, /add kafka-plaintext.*add postgres-plaintext/)
    expect(() => readConfig(env)).not.to.throw(/hunter2/)
  })

  it('are a finding of doctor for each exception in use', () => {
    const { insecure } = readConfig({ ...SECURE, KAFKA_SSL: '', ALLOW_INSECURE: 'kafka-plaintext,public-url-http' })
    const findings = checkExceptions(insecure)
    expect(
      findings.map(({ status, detail }) => [status, /ALLOW_INSECURE has (\S+)\.$/.exec(detail)?.[1]]),
    ).to.deep.equal([['finding', 'kafka-plaintext']])
  })

  it('require an authorizer for subscriptions with a principal, in production alone', () => {
    expect(readConfig(SECURE).needsAuthorizer).to.equal(true)
    expect(readConfig({ ...SECURE, ALLOW_INSECURE: 'kafka-no-authorizer' }).needsAuthorizer).to.equal(false)
    expect(readConfig({}).needsAuthorizer).to.equal(false)
  })

  it('refuse an unknown exception and list the known ones', () => {
    for (const name of ['postgres', 'toString'])
      expect(() => readConfig({ ALLOW_INSECURE: name })).to.throw(
        StartupError,
        new RegExp(`ALLOW_INSECURE.*${INSECURITY_NAMES.join('.*')}`),
      )
  })
})
