import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import kafkajs from 'kafkajs'
import type { Kafka } from '../../scripts/kafka/broker.ts'
import { anOrder, type Client as Caller, clientOf } from '../support/client.ts'
import { createOrderWithLargeFact } from '../support/largeFact.ts'
import { eventually } from '../support/eventually.ts'
import { describeWithOwnBroker, readTopic } from '../support/kafka.ts'
import { type ServiceProcess, startProcess, temporaryDirectory } from '../support/service.ts'
import { run } from '../scripts/cli.ts'
import { startBroker } from '../support/preparedBroker.ts'
import { removeFolder } from '../support/folders.ts'

const TOPIC = 'ledger.order.v1'
const WEEK_MS = String(7 * 24 * 60 * 60 * 1000)
/** Large enough for the facts of this test, except for that of the order with a long reference. */
const SMALL_BYTES = 900
const NORMAL_BYTES = 1_048_588

describeWithOwnBroker('a fact that the broker refuses', () => {
  let dataDir: string
  let kafka: Kafka
  let service: ServiceProcess
  let caller: Caller

  const limit = async (bytes: number): Promise<void> => {
    const admin = new kafkajs.Kafka({ brokers: [...kafka.brokers], logLevel: kafkajs.logLevel.NOTHING }).admin()
    await admin.connect()
    const configEntries = [
      { name: 'max.message.bytes', value: String(bytes) },
      { name: 'retention.ms', value: WEEK_MS },
    ]
    await admin.alterConfigs({
      validateOnly: false,
      resources: [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: TOPIC, configEntries }],
    })
    await admin.disconnect()
  }
  const deadLetters = (...args: readonly string[]) =>
    run('ledger.ts', ['dead-letters', ...args, '--json'], { LEDGER_DATA_DIR: join(dataDir, 'ledger') })
  const waiting = async () => JSON.parse((await deadLetters('list')).stdout).keys
  const typesOf = async (key: string): Promise<(string | undefined)[]> =>
    (await readTopic(kafka.brokers, TOPIC))
      .filter(message => message.key === key)
      .map(({ headers }) => headers['ce_type'])
  const order = async () => ({ id: String((await caller.post('/orders', anOrder())).body.id) })

  before(async () => {
    dataDir = await temporaryDirectory()
    await mkdir(join(dataDir, 'kafka'))
    kafka = await startBroker({ dataDir: join(dataDir, 'kafka') })
    service = await startProcess(join(dataDir, 'ledger'), { KAFKA_BROKERS: kafka.brokers.join(',') })
    caller = clientOf(service.api, await service.token())
  })
  after(async () => {
    await service?.end('SIGTERM')
    await kafka?.stop()
    await removeFolder(dataDir)
  })

  it('is parked with its key while others are delivered; after the repair a replay delivers the key in order', async () => {
    const first = await order()
    await eventually(async () => (await typesOf(first.id)).length === 1)
    await limit(SMALL_BYTES)
    const victim = {
      id: await createOrderWithLargeFact(service, { tenant: 'acme', customer_reference: 'x'.repeat(500) }),
    }
    const ifMatch = (await caller.get(`/orders/${victim.id}`)).headers.get('etag') ?? ''
    await caller.post(`/orders/${victim.id}:cancel`, {}, { 'if-match': ifMatch })
    const other = await order()
    await eventually(async () => (await typesOf(other.id)).length === 1)
    await eventually(async () => (await waiting())[0]?.waiting === '2')
    expect(await waiting()).to.have.length(1)
    expect((await waiting())[0]).to.include({
      delivery: 'publisher',
      key: victim.id,
      type: 'OrderCreated',
      attempts: 10,
    })
    expect(await typesOf(victim.id)).to.deep.equal([])

    const refused = await deadLetters('replay', victim.id)
    expect([refused.code, refused.stderr]).to.deep.equal([1, refused.stderr])
    expect(refused.stderr).to.include('It failed again')

    await limit(NORMAL_BYTES)
    const replayed = await deadLetters('replay', victim.id)
    expect([replayed.code, JSON.parse(replayed.stdout).replayed]).to.deep.equal([0, 2])
    expect(await typesOf(victim.id)).to.deep.equal(['order.created', 'order.cancelled'])
    expect(await waiting()).to.deep.equal([])
    const replayedKeys = async () => {
      const { items } = (await caller.get('/audit-records?operation=replay_dead_letters')).body
      return items.map(({ resource }: { resource: string }) => resource)
    }
    await eventually(async () => (await replayedKeys()).length === 2)
    expect(await replayedKeys()).to.deep.equal([victim.id, victim.id])
  })
})
