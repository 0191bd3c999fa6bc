import { generateKeyPairSync } from 'node:crypto'
import { expect } from 'chai'
import { FEED_LEASES } from '../../../src/schema/locks.ts'
import { MANIFEST_TOPICS, TOPIC_PARTITIONS } from '../../../projections/factTopics.ts'
import { clockCheck } from '../../../scripts/ledger/doctor/databaseChecks.ts'
import {
  checkApproval,
  checkConfiguration,
  readConfiguration,
  SHOWN,
} from '../../../scripts/ledger/doctor/configuration.ts'
import { PROCESSES } from '../../../scripts/ledger/doctor/feeds.ts'
import { checkLocks, neededLeases } from '../../../scripts/ledger/doctor/locks.ts'
import { topicsCheck } from '../../../scripts/ledger/doctor/dependencies.ts'
import { openDatabase } from '../../../src/adapters/postgres/database.ts'
import { SETTINGS } from '../../../src/settings/config.ts'
import { fulfilment } from '../../../src/processes/fulfilment.ts'
import { paymentRecovery } from '../../../src/processes/paymentRecovery.ts'
import { approvedInvoice, type Client, clientOf } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { kafkaForTests, kafkaKind } from '../../support/kafka.ts'
import { sharedService, type TestService } from '../../support/service.ts'
import {
  closedPort,
  diagnosisOf,
  emptyFolder,
  findingsIn,
  folderWith,
  ledger,
  serving,
  silentPort,
  tidyUp,
} from './fixtures.ts'

const TENANT = 'operators'
const PARTS = [
  ...[
    'configuration',
    'node',
    'data directory',
    'disk',
    'API',
    'event store',
    'event store rights',
    'tenants',
    'Postgres',
  ],
  ...['versions', 'clock', 'log', 'locks', 'feed facts_v1', 'dead letters', 'issuer', 'metrics'],
] as const

describe('npm run ledger -- doctor', () => {
  let service: TestService
  let client: Client
  before(async () => {
    service = await sharedService()
    client = clientOf(service.api, await service.token({ tenant: TENANT }))
  })
  after(tidyUp)

  it('has no finding for a running service, and prints every address', async () => {
    // The feeds may still process events of other tests of the shared service, and a slow machine answers late.
    const ended = await eventually(async () => {
      const now = await ledger(['doctor', '--json'])
      return now.code === 0 && now
    })
    expect(findingsIn(ended)).to.deep.equal({})
    expect(ended.code).to.equal(0)
    const { ok, addresses, feeds } = diagnosisOf(ended)
    const { pids: _, ...known } = service.addresses
    const masked = known.postgres.replace(/:[^:@]+@/, ':…@')
    expect(masked).not.to.equal(known.postgres)
    expect(addresses).to.deep.equal({ ...known, postgres: masked })
    const password = new URL(known.postgres).password
    expect(ended.stdout).not.to.include(password)
    expect(diagnosisOf(await ledger(['doctor', '--json', '--with-passwords'])).addresses).to.deep.equal(known)
    expect(ok).to.equal(true)
    const names = ['orders_v1', 'invoices_v1', 'payments_v1', 'facts_v1', 'settlement', 'fulfilment']
    expect(feeds.map(({ name }) => name)).to.include.members(names)
  })

  it('prints a table without the password of Postgres', async () => {
    const { stdout } = await eventually(async () => {
      const now = await ledger(['doctor'])
      return now.code === 0 && now
    })
    for (const part of PARTS) expect(stdout).to.match(new RegExp(`^ok +${part} `, 'm'))
    expect(stdout)
      .to.include(`in use by process ${service.addresses.pids['service']}`)
      .and.to.include('No problems were found.')
    expect(stdout).not.to.include(new URL(service.addresses.postgres).password)
  })

  it('names the holder of each lock, and the versions of the servers', async () => {
    const ended = await eventually(async () => {
      const now = await ledger(['doctor', '--json'])
      return now.code === 0 && now
    })
    const { locks, versions } = JSON.parse(ended.stdout)
    const projector = locks.find(({ name }: { name: string }) => name === 'projector')
    expect(projector).to.include({ held: true })
    expect(projector.holder).to.match(new RegExp(`:${service.addresses.pids['service']}$`))
    expect(new Date(projector.since).getTime()).to.be.at.most(Date.now() + 60_000)
    expect(versions.postgres).to.match(/^\d+\.\d+/)
    expect(versions.event_store).to.match(/^\d+\.\d+\.\d+/)
    expect(versions.build).to.match(/^\d+\.\d+\.\d+$/)
  })

  it('prints the configuration without its secrets, and leaves other words alone', async () => {
    const folder = await folderWith({ kafka: '127.0.0.1:1' })
    const env = {
      KAFKA_SASL_PASSWORD: 'ledger',
      API_KEY_PEPPER: 'p'.repeat(40),
      LOG_LEVEL: 'warn',
      LEDGER_PROCESES: '2',
    }
    const ended = await ledger(['doctor', '--json'], folder, {
      ...env,
      KAFKA_SASL_MECHANISM: 'plain',
      KAFKA_SASL_USERNAME: 'ledger',
      KAFKA_BROKERS: '127.0.0.1:1',
    })
    const { configuration } = JSON.parse(ended.stdout)
    expect(configuration).to.include({ KAFKA_SASL_PASSWORD: '…', API_KEY_PEPPER: '…', LOG_LEVEL: 'warn' })
    expect(configuration).to.include({ KAFKA_SASL_USERNAME: 'ledger', LEDGER_DATA_DIR: folder })
    expect(findingsIn(ended)['configuration']).to.equal(
      'LEDGER_PROCESES is not a setting of the service and has no effect. Did you mean LEDGER_PROCESSES?',
    )
    expect(ended.stdout).not.to.include('p'.repeat(40))
  })

  it('says whether four eyes are needed for an approval', async () => {
    expect(checkApproval({})).to.include({ check: 'approval', status: 'not_used' })
    expect(checkApproval({ APPROVAL_FOUR_EYES: 'acme=USD:1' })).to.include({ detail: 'four eyes from acme=USD:1' })
  })

  it('shows no value of a setting that is not known to be harmless', () => {
    const [harmless, secret] = [SETTINGS.filter(name => SHOWN.has(name)), SETTINGS.filter(name => !SHOWN.has(name))]
    expect(secret).to.have.members(['API_KEY_PEPPER', 'EVIDENCE_SIGNING_KEY', 'KAFKA_SASL_PASSWORD'])
    expect([...SHOWN]).to.have.members(harmless)
    const key = generateKeyPairSync('ed25519').privateKey
    const der = key.export({ format: 'der', type: 'pkcs8' }).toString('base64')
    const settings = { EVIDENCE_SIGNING_KEY: der, OIDC_AUDIENCE: der, EVIDENCE_HEADS_FILE: '/heads' }
    const shown = { EVIDENCE_HEADS_FILE: '/heads', EVIDENCE_SIGNING_KEY: '…', OIDC_AUDIENCE: '…' }
    expect(readConfiguration(settings)).to.deep.equal(shown)
  })

  it('names settings that resemble one of the service', () => {
    const { detail, status } = checkConfiguration({ EVIDENCE_HEAD_FILE: 'x', KAFKA_SASL_USER: 'x', PATH: '/bin' })
    expect([status, detail]).to.deep.equal([
      'finding',
      'EVIDENCE_HEAD_FILE is not a setting of the service and has no effect. Did you mean EVIDENCE_HEADS_FILE? KAFKA_SASL_USER is not a setting of the service and has no effect.',
    ])
  })

  it('ends in time with every finding when the parts accept connections and never answer', async () => {
    const silent = await silentPort()
    const folder = await folderWith({
      api: `http://127.0.0.1:${silent}`,
      event_store: `esdb://127.0.0.1:${silent}?tls=false`,
      postgres: `postgres://ledger:secret@127.0.0.1:${silent}/ledger`,
      issuer: `http://127.0.0.1:${silent}/oauth`,
      metrics: `http://127.0.0.1:${silent}/metrics`,
    })
    const ended = await ledger(['doctor', '--json'], folder)
    expect(ended.code).to.equal(1)
    const findings = findingsIn(ended)
    expect(findings).to.include.all.keys('API', 'event store', 'Postgres', 'issuer', 'metrics')
    for (const part of ['API', 'issuer', 'metrics']) expect(findings[part]).to.match(/no answer in 8 s|timeout/)
    expect(findings['event store']).to.match(/silent for 3\.0 s|no answer/)
    const { checks } = diagnosisOf(ended)
    const notChecked = checks.filter(({ status }) => status === 'not_checked').map(({ check }) => check)
    expect(notChecked).to.include.members(['event store rights', 'log', 'feeds', 'clock', 'locks', 'dead letters'])
    const { stdout } = await ledger(['doctor'], folder)
    expect(stdout).to.match(/^not checked: +event store rights +the event store does not answer\.$/m)
    expect(stdout).not.to.include('Permit the user')
  })

  it('reports a clock that is off, and not one whose question took long', () => {
    expect(clockCheck(1_900, 0).status).to.equal('ok')
    expect(clockCheck(5_000, 4_000).status).to.equal('ok')
    expect(clockCheck(5_000, 10)).to.include({
      status: 'finding',
      detail: 'It is 5.0 s ahead of the clock of Postgres.',
    })
    expect(clockCheck(-9_990, 10)).to.include({
      status: 'finding',
      detail: 'It is 10.0 s behind the clock of Postgres.',
    })
  })

  it('reports locks without a holder, and topics that are missing or have another number of partitions', () => {
    const lease = (name: string, held: boolean) => ({ name, holder: 'host:1', since: 'then', epoch: '3', held })
    const all = [lease('projector', true), lease('worker', false)]
    expect(checkLocks(all, ['projector'])).to.include({ status: 'ok', detail: 'projector: host:1 since then' })
    expect(checkLocks(all, ['projector', 'worker'])).to.include({
      status: 'finding',
      detail: 'No process holds worker (last host:1). projector: host:1 since then.',
    })
    expect(neededLeases({ hasKafka: true, signs: true })).to.have.members([...FEED_LEASES])
    expect(neededLeases({ hasKafka: false, signs: false })).to.have.members(['projector', 'worker', 'rebuild'])
    const topics = new Map(MANIFEST_TOPICS.map(topic => [topic, TOPIC_PARTITIONS]))
    expect(topicsCheck(topics).status).to.equal('ok')
    expect(topicsCheck(new Map([...topics, ['ledger.order.v1', 6]]))).to.include({
      status: 'finding',
      detail: 'ledger.order.v1 has 6 partitions instead of 12.',
    })
    topics.delete('ledger.invoice.v1')
    expect(topicsCheck(topics)).to.include({ status: 'finding', detail: 'There is no topic ledger.invoice.v1.' })
  })

  it('reports that no service runs, and how to start it', async () => {
    const folder = await emptyFolder()
    const ended = await ledger(['doctor', '--json'], folder)
    expect(ended.code).to.equal(1)
    expect(diagnosisOf(ended).addresses).to.deep.equal({
      api: null,
      event_store: null,
      postgres: null,
      kafka: null,
      issuer: null,
      metrics: null,
    })
    expect(findingsIn(ended)).to.deep.equal({ service: 'It is not running.' })
    expect((await ledger(['doctor'], folder)).stdout).to.match(/^service: No service is running on .*npm start/m)
  })

  it('reports each dependency that does not respond', async () => {
    const port = await closedPort()
    const folder = await folderWith({
      api: `http://127.0.0.1:${port}`,
      event_store: `esdb://127.0.0.1:${port}?tls=false`,
      postgres: `postgres://ledger:secret@127.0.0.1:${port}/ledger`,
      kafka: `127.0.0.1:${port}`,
      issuer: `http://127.0.0.1:${port}/oauth`,
    })
    const ended = await ledger(['doctor', '--json'], folder)
    expect(ended.code).to.equal(1)
    const findings = findingsIn(ended)
    expect(Object.keys(findings)).to.deep.equal(['API', 'event store', 'Postgres', 'Kafka', 'issuer'])
    for (const [part, detail] of Object.entries(findings)) expect(detail, part).to.include('ECONNREFUSED')
    const { stdout } = await ledger(['doctor'], folder)
    for (const setting of ['EVENTSTORE_URL', 'KAFKA_BROKERS', 'OIDC_ISSUER'])
      expect(stdout).to.match(new RegExp(`: Start it, or correct ${setting}\\.`))
    expect(stdout).to.include('Postgres: It is embedded in the service, which restarts it.')
    expect(stdout)
      .to.match(/^FINDING +event store /m)
      .and.not.to.include('secret')
  })

  it('reports the failing check of an API that is not ready, and another program on its port', async () => {
    const checks = { postgres: 'ok', invoices_v1: 'The event X is unknown to this build.' }
    const notReadyApi = await serving((request, response) => {
      const live = request.url === '/livez'
      response.writeHead(live ? 200 : 503).end(JSON.stringify({ status: live ? 'ok' : 'not_ready', checks }))
    })
    const notReady = findingsIn(await ledger(['doctor', '--json'], await folderWith({ api: notReadyApi })))
    expect(notReady).to.deep.equal({ API: `${notReadyApi} is not ready: invoices_v1: ${checks.invoices_v1}` })
    const other = await serving((_, response) => void response.end('hello'))
    const notOurs = findingsIn(await ledger(['doctor', '--json'], await folderWith({ api: other })))
    expect(notOurs).to.deep.equal({ API: `What answers at ${other} is not this service.` })
  })

  it('reports the feeds that are behind, and those that have never run', async () => {
    await approvedInvoice(client)
    const owner = openDatabase({ connectionString: service.addresses.postgres, poolMax: 1, statementTimeoutMs: 60_000 })
    await owner.sql('create database doctor_test')
    const postgres = new URL(service.addresses.postgres)
    postgres.pathname = '/doctor_test'
    const database = openDatabase({ connectionString: postgres.href, poolMax: 1 })
    try {
      await database.sql('create table checkpoints (name text primary key, position bigint not null)')
      const far = 10n ** 15n
      for (const [name, position] of [
        ['orders_v1', far],
        ['invoices_v1', -1n],
        ['facts_v1', far],
        ['fulfilment', far],
        ['settlement', far],
        ['gossip_v0', 0n],
        ['auditor', -1n],
      ] as const)
        await database.sql('insert into checkpoints values ($1, $2)', [name, position])
      const ended = await ledger(['doctor', '--json'], await folderWith({ postgres: postgres.href }))
      expect(ended.code).to.equal(1)
      const findings = findingsIn(ended)
      expect(findings['feed invoices_v1']).to.match(/^\d+ events (or more )?behind, at position -1/)
      expect(findings['feed payments_v1']).to.equal('It has never run here.')
      expect(findings).not.to.include.any.keys('feed orders_v1', 'feed facts_v1', 'feed fulfilment', 'feed gossip_v0')
      // Every event counts for a process manager of a later build, because its categories are not known.
      expect(findings['feed auditor']).to.match(/^\d+ events (or more )?behind/)
      const behind = diagnosisOf(ended).feeds.find(({ name }) => name === 'invoices_v1')?.behind
      expect(behind).to.be.at.least(2)
    } finally {
      await database.close()
      await owner.sql('drop database doctor_test with (force)')
      await owner.close()
    }
  })

  it('checks the dependencies that the environment names when no service runs here', async () => {
    const port = new URL(service.api).port
    const { event_store, postgres } = service.addresses
    const env = { PORT: port, EVENTSTORE_URL: event_store, DATABASE_URL: postgres }
    const ended = await ledger(['doctor', '--json', '--with-passwords'], await emptyFolder(), env)
    expect(diagnosisOf(ended).addresses).to.deep.include({ api: service.api, event_store, postgres })
    expect(findingsIn(ended)).to.deep.equal({ issuer: 'Its address is not known.' })
    expect(ended.code).to.equal(1)
  })

  if (kafkaKind !== 'none')
    it('requests the brokers from Kafka', async () => {
      const kafka = (await kafkaForTests())?.brokers.join(',') ?? ''
      const { checks } = diagnosisOf(await ledger(['doctor', '--json'], await folderWith({ kafka })))
      const check = checks.find(({ check }) => check === 'Kafka')
      expect(check).to.include({ status: 'ok' })
      expect(check?.detail).to.match(/, brokers: [1-9]/)
    })

  it('expects the existing process managers', () => {
    const { ledger } = {} as never
    expect(PROCESSES).to.include.members([paymentRecovery(ledger).name, fulfilment(ledger).name])
  })
})
