import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ServerCredentials, status } from '@grpc/grpc-js'
import { expect } from 'chai'
import { startTestNode, type TestNode } from '../embedded/eventStoreNode.ts'
import { outputUntil } from '../support/starts.ts'
import { diagnosisOf, ledger } from '../scripts/ledger/fixtures.ts'
import { clientOf } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { removeFolder } from '../support/folders.ts'
import { kafkaForTests, kafkaKind, type KafkaForTests, readTopic } from '../support/kafka.ts'
import { openOtlpCollector, type OtlpCollector } from '../support/otlpCollector.ts'
import { newDatabase } from '../support/postgres.ts'
import { type SecurePostgres, securePostgres } from '../support/securePostgres.ts'
import { startRefusingStore } from '../support/refusingStore.ts'
import { type Certified, newAuthority } from '../support/selfSigned.ts'
import { startProcess, temporaryDirectory } from '../support/service.ts'
import { openTlsProxy, type TlsProxy } from '../support/tlsProxy.ts'

/**
 * Every dependency over TLS, with certificates of an authority of the test's own: what the service and `ledger doctor` say
 * when one is wrong. In front of the event store a proxy has the certificate; Postgres and Kafka have their own.
 */

const authority = newAuthority('The authority of the tests')
const GOOD = authority.issue(['localhost'])
const OTHER_NAME = authority.issue(['other.example'])
const EXPIRED = authority.issue(['localhost'], 'expired')

const telemetry = new URL('../../src/telemetry.ts', import.meta.url).href
const ORDER = { currency: 'USD', lines: [{ sku: 'tea', quantity: 2, unit_amount: 450 }] }
const PASSWORD = /:[^:@]+@/

type Env = Record<string, string>

describe('over TLS', () => {
  let folder: string
  let node: TestNode
  let postgres: SecurePostgres
  let kafka: KafkaForTests | undefined
  let database: URL
  const closing: (() => unknown)[] = []
  const files: Record<'authority' | 'kafka' | 'other', string> = { authority: '', kafka: '', other: '' }

  const proxy = async (certified: Certified, port: number): Promise<TlsProxy> => {
    const opened = await openTlsProxy(certified, port)
    closing.push(opened.close)
    return opened
  }
  const collector = async (certified: Certified): Promise<OtlpCollector> => {
    const opened = await openOtlpCollector(certified)
    closing.push(opened.close)
    return opened
  }

  before(async () => {
    folder = await temporaryDirectory()
    for (const [name, cert] of [
      ['authority', authority.cert],
      ['other', newAuthority('Another authority').cert],
    ] as const) {
      files[name] = join(folder, `${name}.pem`)
      await writeFile(files[name], cert)
    }
    node = await startTestNode()
    database = new URL(await newDatabase())
    postgres = await securePostgres(database.href)
    kafka = kafkaKind === 'real' ? await kafkaForTests() : undefined
    files.kafka = join(folder, 'kafka.pem')
    await writeFile(files.kafka, kafka?.authority ?? '')
    if (kafka === undefined) process.stdout.write('Kafka over TLS is not run: it needs a broker of the tests.\n')
  })
  after(async () => {
    for (const close of closing) close()
    await postgres.restore()
    await node.stop()
    await removeFolder(folder)
  })

  const storePort = (): number => Number(new URL(node.address).port)
  const storeUrl = (port: number, ca: string): string =>
    `kurrentdb://ledger:p%40ss@localhost:${port}?tls=true&tlsCAFile=${encodeURIComponent(ca)}`
  const databaseUrl = (ca: string, change: (url: URL) => void = () => undefined): string => {
    const url = new URL(database)
    url.hostname = 'localhost'
    url.search = `?sslmode=verify-full&sslrootcert=${encodeURIComponent(ca)}`
    change(url)
    return url.href
  }
  const kafkaEnv = (brokers: readonly string[], ca: string, password?: string): Env =>
    kafka?.sasl === undefined
      ? {}
      : {
          KAFKA_BROKERS: brokers.join(','),
          KAFKA_SSL: 'true',
          KAFKA_SSL_CA_FILE: ca,
          KAFKA_SASL_MECHANISM: 'plain',
          KAFKA_SASL_USERNAME: 'ledger',
          KAFKA_SASL_PASSWORD: password ?? kafka.sasl.users['ledger'] ?? '',
        }
  const otlpEnv = (url: string, ca: string): Env => ({
    OTEL_EXPORTER_OTLP_ENDPOINT: url,
    OTEL_EXPORTER_OTLP_CERTIFICATE: ca,
  })
  const secure = (): readonly string[] => kafka?.sasl?.secureBrokers ?? []
  const plain = (): number => Number(kafka?.brokers[0]?.split(':')[1] ?? 0)

  /** Every server has the certificate; the one of Kafka that the tests start is replaced by a proxy. */
  const certifiedBy = async (certified: Certified): Promise<Env> => {
    await postgres.use(certified)
    const brokers = [`localhost:${(await proxy(certified, plain())).port}`]
    return {
      EVENTSTORE_URL: storeUrl((await proxy(certified, storePort())).port, files.authority),
      DATABASE_URL: databaseUrl(files.authority),
      ...kafkaEnv(brokers, files.authority),
      ...otlpEnv((await collector(certified)).url, files.authority),
    }
  }

  const right = async (): Promise<Env> => ({ ...(await certifiedBy(GOOD)), ...kafkaEnv(secure(), files.kafka) })

  const wrongAuthority = async (): Promise<Env> => ({
    ...(await certifiedBy(GOOD)),
    EVENTSTORE_URL: storeUrl((await proxy(GOOD, storePort())).port, files.other),
    DATABASE_URL: databaseUrl(files.other),
    ...kafkaEnv(secure(), files.other),
    OTEL_EXPORTER_OTLP_CERTIFICATE: files.other,
  })

  const wrongPasswords = async (): Promise<Env> => {
    const credentials = ServerCredentials.createSsl(null, [
      { cert_chain: Buffer.from(GOOD.cert), private_key: Buffer.from(GOOD.key) },
    ])
    const refusing = await startRefusingStore({
      code: status.UNAUTHENTICATED,
      details: 'Not authenticated',
      credentials,
    })
    closing.push(refusing.stop)
    return {
      ...(await certifiedBy(GOOD)),
      EVENTSTORE_URL: storeUrl(refusing.port, files.authority),
      DATABASE_URL: databaseUrl(files.authority, url => (url.password = 'opensesame')),
      ...kafkaEnv(secure(), files.kafka, 'opensesame'),
    }
  }

  /** The servers answer without TLS. */
  const unencrypted = async (): Promise<Env> => {
    await postgres.use(undefined)
    return {
      EVENTSTORE_URL: storeUrl(storePort(), files.authority),
      DATABASE_URL: databaseUrl(files.authority),
      ...kafkaEnv([`localhost:${plain()}`], files.kafka),
      ...otlpEnv(`https://localhost:${storePort()}`, files.authority),
    }
  }

  const PARTS = ['event store', 'Postgres', ...(kafkaKind === 'real' ? ['Kafka'] : []), 'telemetry'] as const

  /** What doctor finds in each part, with its remedy. */
  const foundWith = async (env: Env): Promise<Record<string, string>> => {
    const ended = await ledger(['doctor', '--json'], join(folder, 'none'), env)
    const { checks } = diagnosisOf(ended)
    const named = checks.filter(({ check }) => PARTS.includes(check))
    expect(named.map(({ check }) => check)).to.have.members([...PARTS])
    for (const text of [ended.stdout, ended.stderr]) {
      expect(text).not.to.include('p%40ss').and.not.to.include('opensesame')
      expect(text).not.to.include(database.password)
    }
    return Object.fromEntries(
      named.map(({ check, status: state, detail, way_out = '' }) => [
        check,
        state === 'ok' ? 'ok' : `${detail} ${way_out}`,
      ]),
    )
  }

  const expectEach = (found: Record<string, string>, patterns: Record<string, RegExp>): void => {
    for (const part of PARTS)
      expect(found[part], `${part}: ${found[part]}`).to.match(patterns[part] ?? patterns['each'] ?? /^$/)
  }

  it('doctor has no finding with the right certificates and passwords', async () => {
    expect(await foundWith(await right())).to.deep.equal(Object.fromEntries(PARTS.map(part => [part, 'ok'])))
  })

  it('doctor names an authority that is not trusted, and where the right one is set', async () => {
    const each = /cannot be used: its certificate was issued by an authority that is not trusted here\. Set /
    const found = await foundWith(await wrongAuthority())
    expectEach(found, { each })
    expect(found['event store']).to.include('Set tlsCAFile in EVENTSTORE_URL to the file')
    expect(found['Postgres']).to.include('Set sslrootcert in DATABASE_URL to the file')
    expect(found['Kafka'] ?? 'KAFKA_SSL_CA_FILE').to.include('KAFKA_SSL_CA_FILE')
    expect(found['telemetry']).to.include('Set OTEL_EXPORTER_OTLP_CERTIFICATE to the file')
  })

  it('doctor names a certificate for another host', async () => {
    const each =
      /cannot be used: its certificate is for other\.example, not for localhost\. Use a name of the certificate in /
    expectEach(await foundWith(await certifiedBy(OTHER_NAME)), { each })
  })

  it('doctor names a certificate that has expired', async () => {
    const each = /cannot be used: its certificate has expired\. Renew it at the server/
    expectEach(await foundWith(await certifiedBy(EXPIRED)), { each })
  })

  it('doctor names a password that is refused', async () => {
    expectEach(await foundWith(await wrongPasswords()), {
      'event store': /refuses the user name or the password.*\. Correct the user and the password in EVENTSTORE_URL\./,
      Postgres: /password authentication failed for user .*\. Correct the user and the password in DATABASE_URL\./,
      Kafka: /refused the login of user ledger by plain\. Correct KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD\./,
      telemetry: /^ok$/,
    })
  })

  it('doctor names a server that does not speak TLS', async () => {
    const each =
      /cannot be used: it (?:does not speak TLS at this port|closed the connection during the TLS handshake)\. Correct the port in [A-Z_]+, or turn on TLS/
    expectEach(await foundWith(await unencrypted()), { each })
  })

  it('a start names each certificate that it does not trust', async () => {
    const parts = ['(EVENTSTORE_URL)', '(DATABASE_URL)', ...(kafka ? ['(KAFKA_BROKERS)'] : []), 'OTLP_ENDPOINT)']
    const sentences = parts.map(part => `${part}: its certificate was issued by an authority that is not trusted here.`)
    const output = await outputUntil(sentences, await wrongAuthority())
    expect(output.match(/^Cannot connect to .* here\. Set .* Trying again\.$/gm)).to.have.length(parts.length)
    expect(output).not.to.match(PASSWORD)
  })

  it('a start names each password that is refused', async () => {
    const wrong = await wrongPasswords()
    expect(await outputUntil('(DATABASE_URL): password authentication failed', wrong)).to.match(
      /^Waiting for Postgres at localhost:\d+ \(DATABASE_URL\): password authentication failed for user "\w+"\. Correct the user and the password in DATABASE_URL\.$/m,
    )
    if (kafka === undefined) return
    const { EVENTSTORE_URL = '' } = await certifiedBy(GOOD)
    expect(
      await outputUntil('has failed: Kafka refused the login', {
        ...wrong,
        DATABASE_URL: databaseUrl(files.authority),
        EVENTSTORE_URL,
      }),
    ).to.match(
      /^The feed \w+ has failed: Kafka refused the login of user ledger by plain\. Trying again; see .* doctor\.$/m,
    )
  })

  it('the service publishes a fact and exports its traces, with all secrets in files', async () => {
    const { EVENTSTORE_URL = '', DATABASE_URL = '', KAFKA_SASL_PASSWORD, ...env } = await right()
    const received = await collector(GOOD)
    const secrets = { EVENTSTORE_URL, DATABASE_URL, ...(KAFKA_SASL_PASSWORD && { KAFKA_SASL_PASSWORD }) }
    for (const [name, value] of Object.entries(secrets)) await writeFile(join(folder, name), `${value}\n`)
    const dataDir = await temporaryDirectory()
    const service = await startProcess(dataDir, {
      ...env,
      ...Object.fromEntries(Object.keys(secrets).map(name => [`${name}_FILE`, join(folder, name)])),
      ...otlpEnv(received.url, files.authority),
      NODE_OPTIONS: `--import ${telemetry}`,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
      OTEL_LOGS_EXPORTER: 'none',
    })
    try {
      const client = clientOf(service.api, await service.token())
      const { status: created, body } = await client.post('/orders', ORDER)
      expect(created).to.equal(201)
      if (kafka !== undefined) {
        const { brokers } = kafka
        await eventually(async () =>
          (await readTopic(brokers, 'ledger.order.v1')).some(({ value }) => value.includes(String(body['id']))),
        )
      }
      expect(await service.end('SIGTERM')).to.equal(0)
      expect(received.text()).to.include('POST /orders')
    } finally {
      await service.end('SIGKILL')
      await removeFolder(dataDir)
    }
  })
})
