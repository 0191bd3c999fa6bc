import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { parse } from 'yaml'
import { readConfig } from '../../src/settings/config.ts'
import { removeFolder } from '../support/folders.ts'
import { newAuthority } from '../support/selfSigned.ts'

/** docker-compose.yml with scripts/compose/tls.yaml: no part without TLS. test/soak/containers.test.ts runs them. */

type Environment = Readonly<Record<string, string>>
type Part = {
  readonly environment?: Environment
  readonly volumes?: readonly string[]
  readonly command?: string | readonly string[]
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>
}
type Compose = {
  readonly services: Readonly<Record<string, Part>>
  readonly volumes: Readonly<Record<string, unknown>>
}

const textOf = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
const composeIn = (path: string): Compose => parse(textOf(path), { merge: true }) as Compose

/** Their metrics name no customer, and they have no other data. */
const WITHOUT_DATA = ['prometheus', 'grafana']
const SERVICES = ['api', 'api-2', 'feeds', 'feeds-2']
const EVENT_STORES = ['eventstore', 'eventstore-1', 'eventstore-2', 'eventstore-3']

const base = composeIn('docker-compose.yml')
const tls = composeIn('scripts/compose/tls.yaml')
const partOf = ({ services }: Compose, name: string): Part => services[name] ?? expect.fail(`There is no ${name}.`)
const environmentOf = (name: string): Environment => ({
  ...partOf(base, name).environment,
  ...partOf(tls, name).environment,
})

/** As compose replaces `${NAME}`, `${NAME:-default}` and `${NAME:?why}`. */
const interpolated = (text: string, values: Environment): string =>
  text.replaceAll(/\$\{(\w+)(?::?([-?])([^}]*))?\}/g, (_all, name: string, operator?: string, operand = '') => {
    if (values[name] !== undefined) return values[name]
    return operator === '-' ? operand : expect.fail(`${name} is not set.`)
  })

const VALUES: Environment = {
  POSTGRES_PASSWORD: 'secret-of-postgres',
  EVENTSTORE_PASSWORD: 'secret-of-the-event-store',
  API_KEY_PEPPER: 'secret-of-api-keys-and-long-enough',
  EVIDENCE_SIGNING_KEY: 'secret-of-heads',
  OIDC_ISSUER: 'https://issuer.example',
  OIDC_AUDIENCE: 'ledger',
}

describe('docker-compose.yml with scripts/compose/tls.yaml', () => {
  let folder: string
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'compose-tls-'))
    const authority = newAuthority('The authority of the parts')
    const { cert, key } = authority.issue(['ledger'])
    const { environment = {} } = partOf(tls, 'certificates')
    const files = {
      'ca.crt': authority.cert,
      'tls.crt': cert,
      'tls.key': key,
      ...Object.fromEntries(
        Object.entries(environment).map(([name, text]) => [name.toLowerCase().replaceAll('_', '-'), text]),
      ),
    }
    for (const [name, text] of Object.entries(files))
      writeFileSync(join(folder, name), interpolated(text, VALUES).replaceAll('/tls/', `${folder}/`))
  })
  after(() => removeFolder(folder))

  it('gives a certificate to every part with data, before its start', () => {
    const parts = Object.keys(base.services).filter(name => !WITHOUT_DATA.includes(name))
    expect(Object.keys(tls.services)).to.have.members([...parts, 'certificates'])
    const { volumes = [] } = partOf(tls, 'certificates')
    for (const name of parts) {
      const { depends_on, volumes: mounted = [] } = partOf(tls, name)
      expect(depends_on?.['certificates']?.condition, name).to.equal('service_completed_successfully')
      const [volume = ''] = mounted.filter(text => text.endsWith(':/tls:ro')).map(text => text.replace(/:.*/, ''))
      expect(Object.keys(tls.volumes), name).to.include(volume)
      expect(volumes, name).to.include(`${volume}:/tls/${volume.replace(/^tls-/, '')}`)
    }
  })

  for (const name of SERVICES)
    it(`has settings of ${name} that production accepts without exceptions, and no secret in its environment`, () => {
      const environment = environmentOf(name)
      const values = Object.values(environment).map(text => interpolated(text, VALUES))
      expect(values.filter(value => value.includes('secret-of'))).to.deep.equal([])
      const env = Object.entries(environment).map(([setting, text]) => [
        setting,
        interpolated(text, VALUES).replaceAll('/tls/', `${folder}/`),
      ])
      const config = readConfig(Object.fromEntries(env) as Environment)
      expect(config.insecure).to.deep.equal([])
      expect(config.unknownSettings).to.deep.equal([])
      expect(config.kafka?.ssl).to.have.all.keys('ca', 'cert', 'key')
      expect(config.telemetry.map(({ url }) => new URL(url).protocol)).to.deep.equal(['https:'])
      expect(config.telemetry.every(({ ca }) => ca !== undefined)).to.equal(true)
      for (const url of [config.databaseUrl, config.eventStoreUrl]) expect(url).to.include(`${folder}/ca.crt`)
      expect(new URL(config.databaseUrl ?? '').searchParams.get('sslmode')).to.equal('verify-full')
    })

  for (const name of EVENT_STORES)
    it(`has a secure node ${name}`, () => {
      const environment = environmentOf(name)
      expect(environment['KURRENTDB_INSECURE']).to.equal('false')
      for (const file of ['CERTIFICATE_FILE', 'CERTIFICATE_PRIVATE_KEY_FILE', 'TRUSTED_ROOT_CERTIFICATES_PATH'])
        expect(environment[`KURRENTDB_${file}`]).to.match(/^\/tls\//)
      for (const user of ['ADMIN', 'OPS'])
        expect(environment[`KURRENTDB_DEFAULT_${user}_PASSWORD`]).to.match(/^\$\{EVENTSTORE_PASSWORD/)
    })

  it('has a Postgres to which no network leads without TLS and a password', () => {
    const { command } = partOf(tls, 'postgres')
    for (const option of ['ssl=on', 'ssl_cert_file=/tls/tls.crt', 'ssl_key_file=/tls/tls.key', 'hba_file='])
      expect(command).to.include(`-c ${option}`)
    const rules = textOf('scripts/compose/tls/pg_hba.conf').match(/^\w.*$/gm) ?? []
    const remote = rules.filter(rule => !rule.startsWith('local '))
    expect(remote).to.have.length(1)
    expect(remote[0]).to.match(/^hostssl .* scram-sha-256$/)
  })

  it('has a broker whose listeners all speak TLS, and ask clients for a certificate', () => {
    const environment = environmentOf('kafka')
    const listeners = (environment['KAFKA_LISTENERS'] ?? '').split(',').map(text => text.replace(/:.*/, ''))
    const protocols = (environment['KAFKA_LISTENER_SECURITY_PROTOCOL_MAP'] ?? '').split(',')
    expect(protocols).to.have.members(listeners.map(name => `${name}:SSL`))
    expect(environment['KAFKA_SSL_CLIENT_AUTH']).to.equal('required')
    expect(environment['KAFKA_AUTHORIZER_CLASS_NAME']).to.match(/StandardAuthorizer$/)
    for (const store of ['KEYSTORE', 'TRUSTSTORE'])
      expect([environment[`KAFKA_SSL_${store}_TYPE`], environment[`KAFKA_SSL_${store}_LOCATION`]]).to.satisfy(
        ([type, path]: string[]) => type === 'PEM' && path?.startsWith('/tls/'),
      )
  })

  it('has a collector that receives nothing without TLS', () => {
    type Collector = {
      readonly receivers: { readonly otlp: { readonly protocols: Record<string, { tls?: unknown }> } }
    }
    const protocolsIn = (path: string) => (parse(textOf(path)) as Collector).receivers.otlp.protocols
    const secured = protocolsIn('scripts/compose/tls/collector.yaml')
    for (const protocol of Object.keys(protocolsIn('scripts/compose/collector.yaml')))
      expect(secured[protocol]?.tls, protocol).to.deep.equal({ cert_file: '/tls/tls.crt', key_file: '/tls/tls.key' })
    expect(partOf(tls, 'otel-collector').command).to.include('--config=/etc/otelcol/tls.yaml')
  })

  it('names each image by an exact tag', () => {
    const images = [...textOf('scripts/compose/tls.yaml').matchAll(/^ +image: (.+)$/gm)].map(([, image]) => image)
    expect(images).to.deep.equal(['alpine/openssl:3.5.4'])
  })
})
