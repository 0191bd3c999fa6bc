import { randomUUID } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { MANIFEST_TOPICS } from '../../projections/factTopics.ts'
import type { Kafka } from '../../scripts/kafka/broker.ts'
import type { Check } from '../../scripts/ledger/doctor/finding.ts'
import { openFactBus } from '../../src/adapters/kafka/factBus.ts'
import { run } from '../scripts/cli.ts'
import { aPayment, approvedInvoice, clientOf, pay } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { removeFolder } from '../support/folders.ts'
import { describeWithOwnBroker, readTopic, type TopicMessage } from '../support/kafka.ts'
import { startBroker } from '../support/preparedBroker.ts'
import { type ServiceProcess, startProcess, temporaryDirectory } from '../support/service.ts'

/** What the doctor says of facts in Kafka that the log lacks, on a real broker. */

const TOPIC = 'ledger.payment.v1'
const PASSWORD = 'reader-password'

describeWithOwnBroker('ledger doctor, with a broker', () => {
  let folder: string
  let kafka: Kafka
  let service: ServiceProcess
  let fact: TopicMessage
  /** A slow machine may not check it in time. */
  const diagnose = (env?: Readonly<Record<string, string>>) =>
    eventually(async () => {
      const settings = env ?? { LEDGER_DATA_DIR: service.dataDir }
      const { code, stdout, stderr } = await run('ledger.ts', ['doctor', '--json'], settings)
      if (stdout === '') return expect.fail(stderr)
      const { checks } = JSON.parse(stdout) as { readonly checks: readonly Check[] }
      const facts = checks.find(({ check }) => check === 'published facts') ?? expect.fail(stdout)
      return facts.status !== 'not_checked' && { code, facts }
    })
  const published = () => readTopic(kafka.brokers, TOPIC).catch(() => [])
  const payOnce = async (): Promise<void> => {
    const client = clientOf(service.api, await service.token({ tenant: 'acme' }))
    const { invoiceId } = await approvedInvoice(client, 300)
    expect((await pay(client, aPayment(invoiceId, { amount: 300 }))).status).to.equal(201)
    fact = await eventually(async () => (await published()).at(-1))
  }
  /** Publishes the fact of the payment again, with other headers. */
  const publish = async (headers: Readonly<Record<string, string>>, count = 1): Promise<void> => {
    const bus = openFactBus({ brokers: kafka.brokers, clientId: 'tests', logger: { warn: () => undefined } })
    const message = { topic: TOPIC, key: fact.key, headers: { ...fact.headers, ...headers }, value: fact.value }
    await bus.publish(Array.from({ length: count }, () => message))
    await bus.close()
  }

  before(async () => {
    folder = await temporaryDirectory()
    await mkdir(join(folder, 'kafka'))
    const users = { reader: PASSWORD }
    kafka = await startBroker({ dataDir: join(folder, 'kafka'), sasl: { users } })
    service = await startProcess(join(folder, 'ledger'), { KAFKA_BROKERS: kafka.brokers.join(',') })
  })
  after(async () => {
    await service?.end('SIGTERM')
    await kafka?.stop()
    await removeFolder(folder)
  })

  it('compares nothing before the first fact, and finds that the facts in Kafka are in the log', async () => {
    expect((await diagnose()).facts).to.include({ status: 'ok', detail: 'none yet' })
    await payOnce()
    const { code, facts } = await eventually(async () => {
      const now = await diagnose()
      return now.code === 0 && now
    })
    expect(code).to.equal(0)
    expect(facts.status).to.equal('ok')
    expect(facts.detail).to.match(/^the newest \d+ in \d+ partitions? are in the log$/)
  })

  it('finds a fact that the log has lost, and names the drill, until newer facts have covered it', async () => {
    await publish({ ce_id: randomUUID() })
    const { code, facts } = await diagnose()
    expect(code).to.equal(1)
    expect(facts.status).to.equal('finding')
    expect(facts.detail).to.match(
      /^Kafka is ahead of the log: of the newest \d+ in \d+ partitions?, 1 are not in the log/,
    )
    expect(facts.detail).to.include(`such as payment.succeeded of ${fact.headers['ce_subject']} in ${TOPIC}`)
    expect('way_out' in facts && facts.way_out).to.include('drill 4 of scripts/ledger/DISASTER.md')
    await publish({}, 9)
    expect((await diagnose()).facts.status).to.equal('finding')
    await publish({})
    expect((await diagnose()).facts.status).to.equal('ok')
  })

  it('finds a fact of a stream that the log has lost, and one beyond the end of its stream', async () => {
    for (const headers of [{ ce_subject: 'pay_00000000000000000000000000' }, { ce_sequence: '9'.padStart(20, '0') }]) {
      await publish(headers)
      expect((await diagnose()).facts.status).to.equal('finding')
      await publish({}, 10)
    }
    expect((await diagnose()).facts.status).to.equal('ok')
  })

  it('has no finding where its user may not read in a group', async () => {
    const { sasl } = kafka
    if (sasl === undefined) return expect.fail('The broker has no users.')
    const bus = openFactBus({ brokers: kafka.brokers, clientId: 'tests', logger: { warn: () => undefined } })
    expect(await bus.grantReading('reader', { topics: MANIFEST_TOPICS, groupPrefix: 'other-' })).to.equal('granted')
    await bus.close()
    const { facts } = await diagnose({
      LEDGER_DATA_DIR: join(folder, 'reader'),
      EVENTSTORE_URL: service.addresses.event_store,
      KAFKA_BROKERS: sasl.brokers.join(','),
      KAFKA_SASL_MECHANISM: 'plain',
      KAFKA_SASL_USERNAME: 'reader',
      KAFKA_SASL_PASSWORD: PASSWORD,
    })
    expect(facts.status).to.equal('not_used')
    expect(facts.detail).to.match(
      /^not compared with the log: .* Permit this user to read in groups ledger-doctor-\*\.$/,
    )
  })
})
