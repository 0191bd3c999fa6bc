import { execFile } from 'node:child_process'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual, promisify } from 'node:util'
import { readdirSync, readFileSync } from 'node:fs'
import { expect } from 'chai'
import kafkajs, { Kafka as KafkaClient, logLevel } from 'kafkajs'
import type { Kafka } from '../../scripts/kafka/broker.ts'
import { openFactBus } from '../../src/adapters/kafka/factBus.ts'
import { type FactBusOptions, type KafkaLogger } from '../../src/adapters/kafka/client.ts'
import {
  BrokerAccessDenied,
  type FactBus,
  type FactMessage,
  type FactProducer,
  FactTooLarge,
  type TopicSettings,
} from '../../src/ports.ts'
import { factBusContract } from '../contracts/factBus.ts'
import { factBusFaults } from '../contracts/factBusFaults.ts'
import { expectUnavailable, fact, newTopic, numbered, valuesByKey } from '../contracts/factBusFixtures.ts'
import { factBusRightsContract } from '../contracts/factBusRights.ts'
import { eventually } from '../support/eventually.ts'
import { kafkaForTests, kafkaKind, type KafkaForTests, readTopic } from '../support/kafka.ts'
import { startBroker } from '../support/preparedBroker.ts'
import { removeFolder } from '../support/folders.ts'
import { rejectionOf } from '../support/rejection.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const OWN_SEGMENT_MS = '3600000'
const SHORT = { requestTimeoutMs: 1_000, publishDeadlineMs: 1_500 }

const silent: KafkaLogger = { warn: () => undefined }

const busOn = (brokers: readonly string[], more: Partial<FactBusOptions> = {}): FactBus =>
  openFactBus({ brokers, clientId: 'tests', logger: silent, ...more })

const topicsOn = async (brokers: readonly string[]): Promise<readonly string[]> => {
  const admin = new KafkaClient({ brokers: [...brokers], logLevel: logLevel.NOTHING }).admin()
  await admin.connect()
  return admin.listTopics().finally(() => admin.disconnect())
}

const loginOf = (kafka: KafkaForTests, username: string, password?: string): Partial<FactBusOptions> => ({
  sasl: { mechanism: 'plain', username, password: password ?? kafka.sasl?.users[username] ?? '' },
})

/** Tests that need a broker which creates topics with given settings. */
const limits = (kafka: () => KafkaForTests): void => {
  let bus: FactProducer
  let topic: string

  beforeEach(async () => {
    bus = busOn(kafka().brokers, { publishDeadlineMs: 1_500 })
    const settings = newTopic()
    topic = settings.topic
    await bus.ensureTopics([settings])
  })
  afterEach(() => bus.close())

  const topicWithLimit = async (bytes: number): Promise<string> => {
    const admin = new KafkaClient({ brokers: [...kafka().brokers], logLevel: logLevel.NOTHING }).admin()
    const { topic: small } = newTopic()
    await admin.connect()
    const configEntries = [{ name: 'max.message.bytes', value: String(bytes) }]
    await admin.createTopics({ topics: [{ topic: small, numPartitions: 1, replicationFactor: 1, configEntries }] })
    await admin.disconnect()
    return small
  }

  const settingsOf = async (
    name: string,
    configNames = ['retention.ms', 'segment.ms'],
  ): Promise<Record<string, string>> => {
    const admin = new KafkaClient({ brokers: [...kafka().brokers], logLevel: logLevel.NOTHING }).admin()
    await admin.connect()
    const resources = [{ type: kafkajs.ConfigResourceTypes.TOPIC, name, configNames }]
    const described = await admin.describeConfigs({ includeSynonyms: false, resources })
    await admin.disconnect()
    const entries = described.resources[0]?.configEntries ?? []
    return Object.fromEntries(entries.map(({ configName, configValue }) => [configName, configValue]))
  }

  /** A topic created by an operator, with settings that differ from the broker's defaults. */
  const topicOfOperator = async (retention: string): Promise<TopicSettings> => {
    const settings = newTopic()
    const admin = new KafkaClient({ brokers: [...kafka().brokers], logLevel: logLevel.NOTHING }).admin()
    await admin.connect()
    const configEntries = [
      { name: 'retention.ms', value: retention },
      { name: 'segment.ms', value: OWN_SEGMENT_MS },
    ]
    const { partitions: numPartitions } = settings
    await admin.createTopics({
      topics: [{ topic: settings.topic, numPartitions, replicationFactor: 1, configEntries }],
    })
    await admin.disconnect()
    return settings
  }

  it('lengthens the retention of an existing topic, keeps its other settings, and never shortens it', async () => {
    const settings = await topicOfOperator('1000')
    const { retentionMs } = settings
    const kept = { 'retention.ms': String(retentionMs), 'segment.ms': OWN_SEGMENT_MS }
    await bus.ensureTopics([settings])
    expect(await settingsOf(settings.topic)).to.deep.equal(kept)
    await bus.ensureTopics([{ ...settings, retentionMs: retentionMs - 1 }])
    expect(await settingsOf(settings.topic)).to.deep.equal(kept)
  })

  it('leaves a topic with unlimited retention unchanged', async () => {
    const settings = await topicOfOperator('-1')
    await bus.ensureTopics([settings])
    expect(await settingsOf(settings.topic)).to.deep.equal({ 'retention.ms': '-1', 'segment.ms': OWN_SEGMENT_MS })
  })

  it('limits the bytes of a partition at its creation, and follows the setting in both directions', async () => {
    const limited = (settings: TopicSettings, retentionBytes: number) =>
      bus.ensureTopics([{ ...settings, retentionBytes }])
    const all = ['retention.bytes', 'retention.ms', 'segment.ms']
    const created = newTopic()
    await limited(created, 4_096)
    expect(await settingsOf(created.topic, ['retention.bytes'])).to.deep.equal({ 'retention.bytes': '4096' })
    const existing = await topicOfOperator('-1')
    for (const bytes of [8_192, 1_024]) {
      await limited(existing, bytes)
      const expected = { 'retention.bytes': String(bytes), 'retention.ms': '-1', 'segment.ms': OWN_SEGMENT_MS }
      // A broker may show the settings from before for a moment.
      await eventually(async () => isDeepStrictEqual(await settingsOf(existing.topic, all), expected))
    }
    await bus.ensureTopics([existing])
    expect((await settingsOf(existing.topic, all))['retention.bytes'], 'without a limit').to.equal('1024')
  })

  it("names a fact over the broker's limit, before it sends anything of the call", async () => {
    const facts = [fact(topic, 'inv_1', 'small'), fact(topic, 'inv_2', 'x'.repeat(1_048_576))]
    const error = await rejectionOf(bus.publish(facts))
    expect(error).to.be.instanceOf(FactTooLarge)
    expect(error).to.include({ key: 'inv_2', topic })
    expect(await readTopic(kafka().brokers, topic)).to.deep.equal([])
  })

  it('sends the largest fact that it permits', async () => {
    await bus.publish([fact(topic, 'inv_1', 'x'.repeat(1_039_900))])
    expect(await readTopic(kafka().brokers, topic)).to.have.length(1)
  })

  it('splits a batch that is too large for a topic, and finds the one fact that is too large alone', async () => {
    const small = await topicWithLimit(20_000)
    const sized = (bytes: number, index: number) => fact(small, 'inv_1', `${index} ${'x'.repeat(bytes)}`)
    await bus.publish(Array.from({ length: 20 }, (_, index) => sized(4_000, index)))
    const error = await rejectionOf(bus.publish([sized(4_000, 20), fact(small, 'inv_big', 'x'.repeat(30_000))]))
    expect(error).to.be.instanceOf(FactTooLarge)
    expect(error).to.include({ key: 'inv_big' })
    const values = valuesByKey(await readTopic(kafka().brokers, small)).get('inv_1')
    expect(values?.map(value => Number(value.split(' ')[0]))).to.deep.equal(Array.from({ length: 21 }, (_, i) => i))
  })

  it('assigns keys to partitions as Java producers do', async () => {
    // Hashes by the definition of murmur2 in Kafka: the partition is the hash without its sign, modulo the number of
    // partitions.
    const hashes = { '21': -973_932_308, foobar: -790_332_482, 'a-little-bit-long-string': -985_981_536 }
    await bus.publish(Object.keys(hashes).map(key => fact(topic, key, 'v')))
    const messages = (await readTopic(kafka().brokers, topic)).map(({ key, partition }) => [key, partition])
    const target = Object.entries(hashes).map(([key, hash]) => [key, (hash & 0x7f_ff_ff_ff) % 12])
    expect(Object.fromEntries(messages)).to.deep.equal(Object.fromEntries(target))
  })

  it('does not create a topic by publishing to it', async () => {
    const error = await rejectionOf(bus.publish(numbered(newTopic().topic, 1, 1)))
    expectUnavailable(error, 'unknown')
  })

  it('gives up a missing topic long before its deadline, so that the caller can create it', async () => {
    const patient = busOn(kafka().brokers, { publishDeadlineMs: 3_600_000 })
    const settings = newTopic()
    try {
      expectUnavailable(await rejectionOf(patient.publish(numbered(settings.topic, 1, 1))), 'unknown')
      await patient.ensureTopics([settings])
      await patient.publish(numbered(settings.topic, 1, 1))
    } finally {
      await patient.close()
    }
  })
}

/** Publishes one fact twice, from a process with the service's telemetry. */
const publishTraced = async (brokers: readonly string[], message: FactMessage): Promise<void> => {
  const program = `
    const { openFactBus } = await import('./src/adapters/kafka/factBus.ts')
    const logger = { warn: () => undefined }
    const bus = openFactBus({ brokers: ${JSON.stringify(brokers)}, clientId: 'tests', logger })
    const message = ${JSON.stringify(message)}
    await bus.publish([message])
    await bus.publish([message])
    await bus.close()
    process.exit(0)`
  const args = ['--import', './src/telemetry.ts', '--input-type=module', '--eval', program]
  const env = { ...process.env, OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' }
  await promisify(execFile)(process.execPath, args, { cwd: ROOT, env })
}

const logins = (kafka: () => KafkaForTests): void => {
  const saslBus = (username: string, password?: string): FactProducer =>
    busOn(kafka().sasl?.brokers ?? [], loginOf(kafka(), username, password))

  /** Permits Alice to describe the topic and its settings, and nothing else. */
  const letAliceDescribe = async (admin: kafkajs.Admin, topic: string): Promise<void> => {
    const operations = [kafkajs.AclOperationTypes.DESCRIBE, kafkajs.AclOperationTypes.DESCRIBE_CONFIGS]
    await admin.createAcls({
      acl: operations.map(operation => ({
        resourceType: kafkajs.AclResourceTypes.TOPIC,
        resourceName: topic,
        resourcePatternType: kafkajs.ResourcePatternTypes.LITERAL,
        principal: 'User:alice',
        host: '*',
        operation,
        permissionType: kafkajs.AclPermissionTypes.ALLOW,
      })),
    })
  }

  it('names a user who may not create topics', async () => {
    const bus = saslBus('alice')
    const error = await rejectionOf(bus.ensureTopics([newTopic()]))
    await bus.close()
    expect(error).to.be.instanceOf(BrokerAccessDenied)
    expect(error.message).to.equal('Kafka does not permit this to alice: TOPIC_AUTHORIZATION_FAILED.')
  })

  it('reports the command that lengthens a retention which the user may not alter', async () => {
    const { topic, ...settings } = newTopic()
    const admin = new KafkaClient({ brokers: [...kafka().brokers], logLevel: logLevel.NOTHING }).admin()
    await admin.connect()
    const configEntries = [{ name: 'retention.ms', value: '1000' }]
    const { partitions: numPartitions } = settings
    await admin.createTopics({ topics: [{ topic, numPartitions, replicationFactor: 1, configEntries }] })
    await letAliceDescribe(admin, topic)
    await admin.disconnect()
    const bus = saslBus('alice')
    // Brokers learn of a new ACL with a delay.
    const error = await eventually(async () => {
      const refused = await rejectionOf(bus.ensureTopics([{ topic, ...settings }]))
      return refused.name === 'TopicMismatch' && refused
    })
    await bus.close()
    const command = `kafka-configs.sh --alter --entity-type topics --entity-name ${topic} --add-config`
    expect(error.message).to.include(`${command} retention.ms=${settings.retentionMs}`)
  })

  it('publishes with the right password', async () => {
    const bus = saslBus('ledger')
    const settings = newTopic()
    await bus.ensureTopics([settings])
    await bus.publish(numbered(settings.topic, 2, 4))
    await bus.close()
    expect(await readTopic(kafka().brokers, settings.topic)).to.have.length(4)
  })

  it('reports a refused login in one sentence without the password', async () => {
    const bus = saslBus('ledger', 'not-the-password')
    const settings = newTopic()
    for (const error of [
      await rejectionOf(bus.ensureTopics([settings])),
      await rejectionOf(bus.publish(numbered('t', 1, 1))),
    ]) {
      expect(error).to.be.instanceOf(BrokerAccessDenied)
      expect(error.message).to.equal('Kafka refused the login of user ledger by plain.')
    }
    await bus.close()
  })

  it('names a user who may not write', async () => {
    const settings = newTopic()
    const ours = saslBus('ledger')
    await ours.ensureTopics([settings])
    const bus = saslBus('alice')
    const error = await rejectionOf(bus.publish(numbered(settings.topic, 1, 1)))
    expect(error).to.be.instanceOf(BrokerAccessDenied)
    expect(error.message).to.contain('alice').and.to.contain('TOPIC_AUTHORIZATION_FAILED')
    await Promise.all([bus.close(), ours.close()])
  })
}

/** A separate broker, so that the faults do not affect other tests. */
const faults = (): void => {
  let dataDir: string
  let kafka: Kafka

  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'ledger-kafka-'))
    kafka = await startBroker({ dataDir })
  })
  after(async () => {
    await kafka?.stop()
    await removeFolder(dataDir)
  })

  const restore = async (): Promise<void> => {
    const port = Number(kafka.brokers[0]?.split(':')[1])
    kafka = await startBroker({ dataDir, port })
  }
  factBusFaults(() => ({
    open: () => busOn(kafka.brokers, SHORT),
    openWithUsualTimeouts: () => busOn(kafka.brokers),
    read: topic => readTopic(kafka.brokers, topic),
    cut: () => kafka.kill(),
    restore,
    freeze: () => freeze(kafka.pid),
    thaw: () => void process.kill(kafka.pid, 'SIGCONT'),
  }))
  describe('without faults and without an authorizer', () =>
    factBusRightsContract(
      () => ({ open: () => busOn(kafka.brokers), topics: () => topicsOn(kafka.brokers) }),
      'not_enforced',
    ))
}

const POLL_EVERY_MS = 5
const POLLS_MAX = 400

/** Waits until every thread is stopped, because a process with many threads may still respond just after SIGSTOP. */
const freeze = (pid: number): void => {
  process.kill(pid, 'SIGSTOP')
  const states = (): string[] =>
    readdirSync(`/proc/${pid}/task`).map(
      thread => /\) (\S)/.exec(readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8'))?.[1] ?? 'T',
    )
  for (let polls = 0; polls < POLLS_MAX && states().some(state => state !== 'T'); polls++)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, POLL_EVERY_MS)
}

describe('the fact bus on Kafka', () => {
  let kafka: KafkaForTests

  if (kafkaKind === 'none') {
    it('was not run: there is no KAFKA_BROKERS, no java with mvn that works, and no kcat', async () => {
      expect(await kafkaForTests()).to.equal(undefined)
    })
    return
  }

  before(async () => {
    const actual = await kafkaForTests()
    if (actual === undefined) throw new Error('A broker was expected.')
    kafka = actual
  })

  describe('without faults', () => {
    const subject = () => ({
      open: () => busOn(kafka.brokers),
      read: (topic: string) => readTopic(kafka.brokers, topic),
    })
    factBusContract(subject, kafkaKind !== 'mock')
  })
  if (kafkaKind !== 'mock') describe('at its limits', () => limits(() => kafka))
  it("keeps a fact's traceparent while the service itself is traced", async () => {
    const { topic, ...settings } = newTopic()
    const bus = busOn(kafka.brokers)
    if (kafkaKind !== 'mock') await bus.ensureTopics([{ topic, ...settings }])
    await bus.close()
    const headers = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' }
    await publishTraced(kafka.brokers, fact(topic, 'inv_1', '{}', headers))
    const seen = await readTopic(kafka.brokers, topic)
    expect(seen.map(message => message.headers)).to.deep.equal([headers, headers])
  })

  if (kafkaKind === 'real') {
    describe('with logins', () => logins(() => kafka))
    describe('with topics that are created and deleted', () =>
      factBusRightsContract(
        () => ({ open: () => busOn(kafka.brokers), topics: () => topicsOn(kafka.brokers) }),
        'granted',
      ))
    describe('with faults', faults)
  }

  it('reports no effect where nothing listens', async () => {
    const bus = busOn(['127.0.0.1:1'], SHORT)
    expectUnavailable(await rejectionOf(bus.publish(numbered('t', 1, 1))), 'none')
    await bus.close()
  })
})
