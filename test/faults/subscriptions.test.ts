import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import kafkajs from 'kafkajs'
import type { Kafka } from '../../scripts/kafka/broker.ts'
import type { CloudEvent } from '../../streams/facts.ts'
import { run } from '../scripts/cli.ts'
import { anOrder, type Client, clientOf, newKey } from '../support/client.ts'
import { createOrderWithLargeFact } from '../support/largeFact.ts'
import { eventually, takesEffect } from '../support/eventually.ts'
import { describeWithOwnBroker, readTopic, type TopicMessage } from '../support/kafka.ts'
import { type ServiceProcess, startProcess, temporaryDirectory } from '../support/service.ts'
import { FACTS_PER_SALE, sell } from './publisherTraffic.ts'
import { startBroker } from '../support/preparedBroker.ts'
import { removeFolder } from '../support/folders.ts'

/** Subscriptions on a real broker with an authorizer. */

const PUBLISHER_TOPICS = ['ledger.order.v1', 'ledger.invoice.v1', 'ledger.payment.v1']
const ALL_OF_A_SALE = [
  'order.created',
  'order.cancelled',
  'invoice.approved',
  'invoice.paid',
  'payment.succeeded',
  'payment.refunded',
]
/** The contract promises 60 s. */
const STOPPED_WITHIN_MS = 10_000
const NOTHING_AFTER_MS = 120_000
const SMALL_BYTES = 900
const NORMAL_BYTES = 1_048_588
const WEEK_MS = 604_800_000

describeWithOwnBroker('subscriptions and a real broker with an authorizer', () => {
  let dataDir: string
  let kafka: Kafka
  let service: ServiceProcess
  let acme: Client
  let globex: Client

  const plain = () => new kafkajs.Kafka({ brokers: [...kafka.brokers], logLevel: kafkajs.logLevel.NOTHING })
  const withAdmin = async <T>(work: (admin: kafkajs.Admin) => Promise<T>): Promise<T> => {
    const admin = plain().admin()
    await admin.connect()
    return work(admin).finally(() => admin.disconnect())
  }
  /** The ACLs of all principals on the topic, its dead letter topic and its groups. */
  const aclsOf = async (topic: string) => {
    const { resources } = await withAdmin(admin =>
      admin.describeAcls({
        resourceType: kafkajs.AclResourceTypes.ANY,
        resourcePatternType: kafkajs.ResourcePatternTypes.ANY,
        operation: kafkajs.AclOperationTypes.ANY,
        permissionType: kafkajs.AclPermissionTypes.ANY,
      }),
    )
    return resources.filter(({ resourceName }) => resourceName.startsWith(topic))
  }
  const ledger = (...args: readonly string[]) => run('ledger.ts', args, { LEDGER_DATA_DIR: join(dataDir, 'ledger') })

  const subscribe = async (client: Client, given: object = {}) => {
    const body = { types: ALL_OF_A_SALE, start: 'beginning', ...given }
    const answer = await client.post('/subscriptions', body)
    expect(answer.status, answer.text).to.equal(201)
    return answer.body
  }
  const read = async (client: Client, id: string) => (await client.get(`/subscriptions/${id}`)).body
  /** Resolves when all earlier facts are at GET /events and delivered. */
  const caughtUp = async (client: Client, id: string): Promise<void> => {
    const marker = await client.post('/orders', anOrder())
    const upTo = async () => (await client.get(`/events?limit=1&subject=${marker.body.id}`)).body.items.length > 0
    await eventually(upTo)
    await eventually(async () => (await read(client, id)).lag === 0)
  }
  /**
   * Another subscription of the tenant, when it has every fact. The feed has then read the state that earlier requests gave to
   * the tenant's subscriptions, and has delivered all earlier facts to those that are active.
   */
  const deliveredLater = async (client: Client): Promise<string> => {
    const { id } = await subscribe(client)
    await caughtUp(client, id)
    return id
  }
  const factsOf = async (client: Client): Promise<CloudEvent[]> => {
    const facts: CloudEvent[] = []
    for (let cursor = ''; ; ) {
      const { body } = await client.get(`/events?limit=100${cursor}`)
      facts.push(...body.items)
      if (!body.page.has_more) return facts
      cursor = `&cursor=${encodeURIComponent(body.page.next_cursor)}`
    }
  }
  const idsOf = (messages: readonly TopicMessage[]) => messages.map(({ headers }) => headers['ce_id'] ?? '')
  /** A message without topic, partition and offset. */
  const bytesOf = ({ key, headers, value }: TopicMessage): string =>
    JSON.stringify([key, Object.entries(headers), value])
  const byKey = (messages: readonly TopicMessage[]) => Map.groupBy(messages, ({ key }) => key)

  const expectHolds = async (topic: string, facts: readonly CloudEvent[]): Promise<TopicMessage[]> => {
    const messages = await eventually(async () => {
      const delivered = await readTopic(kafka.brokers, topic)
      return new Set(idsOf(delivered)).size >= facts.length && delivered
    })
    expect(new Set(idsOf(messages))).to.deep.equal(new Set(facts.map(({ id }) => id)))
    for (const [key, ofKey] of byKey(messages))
      expect([...new Set(idsOf(ofKey))], key).to.deep.equal(
        facts.filter(({ subject }) => subject === key).map(({ id }) => id),
      )
    return messages
  }

  before(async () => {
    dataDir = await temporaryDirectory()
    await mkdir(join(dataDir, 'kafka'))
    kafka = await startBroker({ dataDir: join(dataDir, 'kafka'), sasl: {} })
    service = await startProcess(join(dataDir, 'ledger'), { KAFKA_BROKERS: kafka.brokers.join(',') })
    acme = clientOf(service.api, await service.token({ tenant: 'acme' }))
    globex = clientOf(service.api, await service.token({ tenant: 'globex' }))
  })
  after(async () => {
    await service?.end('SIGTERM')
    await kafka?.stop()
    await removeFolder(dataDir)
  })

  it('have exactly the facts of their tenant and types, byte for byte as on the topics of the publisher', async () => {
    const before = await subscribe(acme)
    const [paid, theirs] = await Promise.all([subscribe(acme, { types: ['invoice.paid'] }), subscribe(globex)])
    await Promise.all([acme, globex, acme, globex].map(sell))
    const after = await subscribe(acme)
    for (const { id } of [before, paid, after]) await caughtUp(acme, id)
    await caughtUp(globex, theirs.id)
    const [ours, others] = await Promise.all([factsOf(acme), factsOf(globex)])
    for (const facts of [ours, others]) expect(facts).to.have.length.above(2 * FACTS_PER_SALE)
    const messages = await expectHolds(before.topic, ours)
    await expectHolds(after.topic, ours)
    await expectHolds(theirs.topic, others)
    await expectHolds(
      paid.topic,
      ours.filter(({ type }) => type === 'invoice.paid'),
    )
    const published = await eventually(async () => {
      const all = (await Promise.all(PUBLISHER_TOPICS.map(topic => readTopic(kafka.brokers, topic)))).flat()
      return all.length >= ours.length + others.length && all
    })
    const publishedBytes = new Map(published.map(message => [message.headers['ce_id'], bytesOf(message)]))
    for (const message of messages) expect(bytesOf(message)).to.equal(publishedBytes.get(message.headers['ce_id']))
  })

  it('begin now, at a position, and at a time', async () => {
    const from = (await factsOf(acme))[3]
    const at = new Date(Date.parse(from?.time ?? '')).toISOString()
    const now = await subscribe(acme, { start: 'now' })
    const [positioned, timed] = [
      await subscribe(acme, { start: { position: from?.position } }),
      await subscribe(acme, { start: { time: at } }),
    ]
    const before = await factsOf(acme)
    await sell(acme)
    const facts = await eventually(async () => {
      const actual = await factsOf(acme)
      return actual.length === before.length + FACTS_PER_SALE && actual
    })
    await expectHolds(now.topic, facts.slice(-FACTS_PER_SALE))
    await expectHolds(
      positioned.topic,
      facts.filter(({ position }) => BigInt(position) >= BigInt(from?.position ?? 0)),
    )
    await expectHolds(
      timed.topic,
      facts.filter(({ time }) => Date.parse(time) >= Date.parse(at)),
    )
  })

  /** The outcome for a user who reads the topic in this group. */
  const readAs = async (user: string, topic: string, groupId: string): Promise<string> => {
    const password = kafka.sasl?.users[user] ?? ''
    const sasl = { mechanism: 'plain' as const, username: user, password }
    const brokers = [...(kafka.sasl?.brokers ?? [])]
    const client = new kafkajs.Kafka({ brokers, sasl, logLevel: kafkajs.logLevel.NOTHING, retry: { retries: 1 } })
    const consumer = client.consumer({ groupId, retry: { retries: 1, restartOnFailure: async () => false } })
    const outcome = Promise.withResolvers<string>()
    const typeOf = (error: unknown): string => {
      for (let at = error; at instanceof Error; at = at.cause)
        if ('type' in at && typeof at.type === 'string') return at.type
      return String(error)
    }
    consumer.on(consumer.events.CRASH, ({ payload }) => outcome.resolve(typeOf(payload.error)))
    try {
      await consumer.connect()
      await consumer.subscribe({ topic, fromBeginning: true })
      await consumer.run({ eachMessage: async () => outcome.resolve('read') })
      return await Promise.race([outcome.promise, delay(NOTHING_AFTER_MS, 'nothing', { ref: false })])
    } catch (error) {
      return typeOf(error)
    } finally {
      await consumer.disconnect()
    }
  }

  it('can be read by their principal alone, in groups with their prefix', async () => {
    const { id, topic, dead_letter_topic } = await subscribe(acme, { principal: 'alice' })
    await caughtUp(acme, id)
    expect((await read(acme, id)).acl).to.equal('granted')
    expect(await readAs('alice', topic, `${topic}.books`)).to.equal('read')
    expect(await readAs('bob', topic, `${topic}.books`)).to.equal('TOPIC_AUTHORIZATION_FAILED')
    expect(await readAs('bob', dead_letter_topic, `${topic}.books`)).to.equal('TOPIC_AUTHORIZATION_FAILED')
    // kafkajs replaces the message of GROUP_AUTHORIZATION_FAILED.
    expect(await readAs('alice', topic, 'books')).to.match(/^KafkaJSGroupCoordinatorNotFound/)
    expect(await readAs('alice', PUBLISHER_TOPICS[0] ?? '', `${topic}.books`)).to.equal('TOPIC_AUTHORIZATION_FAILED')
  })

  it('are replayed from the beginning: the same bytes in the same order', async () => {
    const { id, topic } = await subscribe(acme)
    await caughtUp(acme, id)
    const first = await expectHolds(topic, await factsOf(acme))
    const key = { 'idempotency-key': newKey() }
    const replayed = await acme.post(`/subscriptions/${id}:replay`, { from: 'beginning' }, key)
    expect([replayed.status, replayed.body.kind, replayed.body.state]).to.deep.equal([
      202,
      'replay_subscription',
      'pending',
    ])
    const again = await acme.post(`/subscriptions/${id}:replay`, { from: 'beginning' }, key)
    expect([again.status, again.text, again.headers.get('idempotent-replayed')]).to.deep.equal([
      202,
      replayed.text,
      'true',
    ])
    const operation = replayed.headers.get('location') ?? ''
    await eventually(async () => (await acme.get(operation)).body.state === 'succeeded')
    const both = await eventually(async () => {
      const messages = await readTopic(kafka.brokers, topic)
      return messages.length >= 2 * first.length && messages
    })
    for (const [partition, messages] of Map.groupBy(both, message => message.partition)) {
      const once = first.filter(message => message.partition === partition).map(bytesOf)
      expect(messages.map(bytesOf)).to.deep.equal([...once, ...once])
    }
    const { done, total } = (await acme.get(operation)).body.progress
    expect(done).to.equal(total)
  })

  it('deliver nothing while they are paused, and then continue', async () => {
    const { id, topic } = await subscribe(acme)
    await sell(acme)
    await caughtUp(acme, id)
    const before = await readTopic(kafka.brokers, topic)
    const factsBefore = await factsOf(acme)
    expect((await acme.post(`/subscriptions/${id}:pause`, {})).body.state).to.equal('paused')
    const other = await deliveredLater(acme)
    await sell(acme)
    await caughtUp(acme, other)
    expect(await readTopic(kafka.brokers, topic)).to.have.length(before.length)
    expect((await acme.post(`/subscriptions/${id}:resume`, {})).body.state).to.equal('active')
    await caughtUp(acme, id)
    const facts = await factsOf(acme)
    expect(await expectHolds(topic, facts)).to.have.length(before.length + facts.length - factsBefore.length)
  })

  for (const [reason, { withdraw, restore }] of [
    ['scope_revoked', { withdraw: 'revoke-scope', restore: 'restore-scope' }],
    ['tenant_suspended', { withdraw: 'suspend', restore: 'reinstate' }],
  ] as const)
    it(`stop when their creator loses the permission (${reason}), and continue after it is restored`, async () => {
      const tenant = `t-${reason.replace('_', '-')}`
      const client = clientOf(service.api, await service.token({ tenant }))
      const operator = clientOf(service.api, await service.token({ tenant, subject: 'other' }))
      const { id, topic } = await subscribe(client, { principal: 'alice' })
      await sell(client)
      await caughtUp(client, id)
      const before = await factsOf(client)
      await expectHolds(topic, before)
      const tenants = async (verb: string) => {
        const right = reason === 'scope_revoked' ? ['--subject', 'tester', '--scope', 'invoices:read'] : []
        const { code, stderr } = await ledger('tenants', verb, tenant, ...right, '--reason', 'a test', '--json')
        expect([code, stderr]).to.deep.equal([0, stderr])
      }
      await tenants(withdraw)
      const withdrawnAtMs = performance.now()
      await takesEffect(async () => (await aclsOf(topic)).length === 0, STOPPED_WITHIN_MS)
      process.stdout.write(`      stopped within ${Math.round(performance.now() - withdrawnAtMs)} ms\n`)
      expect(await readAs('alice', topic, `${topic}.after`)).to.equal('TOPIC_AUTHORIZATION_FAILED')
      if (reason === 'scope_revoked') {
        // The ACLs are removed at the broker before the ledger records their removal.
        const stopped = await eventually(async () => {
          const subscription = await read(client, id)
          return subscription.acl === 'pending' && subscription
        })
        expect([stopped.state, stopped.stop_reason]).to.deep.equal(['stopped', reason])
        const refused = await operator.post(`/subscriptions/${id}:resume`, {})
        expect([refused.status, refused.body.code]).to.deep.equal([403, 'policy_denied'])
        await sell(client)
        await deliveredLater(operator)
        expect(await readTopic(kafka.brokers, topic)).to.have.length(before.length)
      }
      await tenants(restore)
      await eventually(async () => (await client.post(`/subscriptions/${id}:resume`, {})).status === 200)
      await sell(client)
      await caughtUp(client, id)
      await expectHolds(topic, await factsOf(client))
      await eventually(async () => (await readAs('alice', topic, `${topic}.back`)) === 'read')
    })

  it('park a fact that the broker refuses with the later ones of its key, and announce them', async () => {
    const client = clientOf(service.api, await service.token({ tenant: 'parked' }))
    const { id, topic, dead_letter_topic } = await subscribe(client)
    const limit = (bytes: number) =>
      withAdmin(admin =>
        admin.alterConfigs({
          validateOnly: false,
          resources: [
            {
              type: kafkajs.ConfigResourceTypes.TOPIC,
              name: topic,
              configEntries: [
                { name: 'max.message.bytes', value: String(bytes) },
                { name: 'retention.ms', value: String(WEEK_MS) },
              ],
            },
          ],
        }),
      )
    await limit(SMALL_BYTES)
    const victim = await createOrderWithLargeFact(service, { tenant: 'parked', customer_reference: 'x'.repeat(500) })
    const ifMatch = (await client.get(`/orders/${victim}`)).headers.get('etag') ?? ''
    await client.post(`/orders/${victim}:cancel`, {}, { 'if-match': ifMatch })
    const other = String((await client.post('/orders', anOrder())).body.id)
    const deadLetters = async () => (await client.get(`/subscriptions/${id}/dead-letters`)).body.items
    await eventually(async () => (await deadLetters()).length === 2)
    const items = await deadLetters()
    expect(
      items.map(({ subject, type, attempts }: Record<string, unknown>) => [subject, type, attempts]),
    ).to.deep.equal([
      [victim, 'order.created', 10],
      [victim, 'order.cancelled', 0],
    ])
    await eventually(async () => (await readTopic(kafka.brokers, topic)).some(({ key }) => key === other))
    const announced = await eventually(async () => {
      const messages = await readTopic(kafka.brokers, dead_letter_topic)
      return messages.length === 2 && messages
    })
    expect(announced.map(({ key, headers }) => [key, headers['ce_id'], headers['ce_type']])).to.deep.equal(
      items.map((item: { id: string; type: string }) => [victim, item.id, item.type]),
    )
    expect(announced[0]?.headers).to.include({ dead_letter_attempts: '10', dead_letter_reason: items[0].reason })
    expect((await read(client, id)).parked).to.equal(2)

    await limit(NORMAL_BYTES)
    const reason = 'The topic takes large facts now.'
    const replayed = await client.post(`/subscriptions/${id}/dead-letters:replay`, { subject: victim, reason })
    expect([replayed.status, replayed.body]).to.deep.equal([202, { subject: victim, requested: 'replay', facts: 2 }])
    await eventually(async () => (await deadLetters()).length === 0)
    await expectHolds(topic, await factsOf(client))
  })

  it('never get a fact that is discarded, and get the later ones of its key when these are replayed', async () => {
    const client = clientOf(service.api, await service.token({ tenant: 'discarded' }))
    const { id, topic } = await subscribe(client)
    const victim = await createOrderWithLargeFact(service, { tenant: 'discarded', customer_reference: 'x'.repeat(500) })
    await caughtUp(client, id)
    await withAdmin(admin =>
      admin.alterConfigs({
        validateOnly: false,
        resources: [
          {
            type: kafkajs.ConfigResourceTypes.TOPIC,
            name: topic,
            configEntries: [{ name: 'max.message.bytes', value: String(SMALL_BYTES) }],
          },
        ],
      }),
    )
    await client.post(`/subscriptions/${id}:replay`, { from: 'beginning' }, { 'idempotency-key': newKey() })
    const ifMatch = (await client.get(`/orders/${victim}`)).headers.get('etag') ?? ''
    await client.post(`/orders/${victim}:cancel`, {}, { 'if-match': ifMatch })
    const path = `/subscriptions/${id}/dead-letters`
    const items = async () => (await client.get(path)).body.items
    await eventually(async () => (await items()).length === 2)
    const [first] = await items()
    const reason = 'It is too large.'
    const body = { subject: victim, position: first.position, reason }
    expect((await client.post(`${path}:discard`, body)).body.facts).to.equal(1)
    await eventually(async () => (await items()).length === 1)
    expect((await client.post(`${path}:discard`, body)).body.facts, 'once').to.equal(0)
    await client.post(`${path}:replay`, { subject: victim, reason })
    await eventually(async () => (await items()).length === 0)
  })

  it('leave no topic and no ACL behind when they are deleted', async () => {
    const { id, topic, dead_letter_topic } = await subscribe(acme, { principal: 'alice' })
    const topics = await withAdmin(admin => admin.listTopics())
    expect(topics, 'the topics exist before the response').to.include.members([topic, dead_letter_topic])
    expect((await acme.request('DELETE', `/subscriptions/${id}`)).status).to.equal(204)
    expect((await acme.request('DELETE', `/subscriptions/${id}`)).status).to.equal(404)
    expect((await acme.get(`/subscriptions/${id}`)).status).to.equal(404)
    await eventually(async () => !(await withAdmin(admin => admin.listTopics())).some(name => name.startsWith(topic)))
    expect(await aclsOf(topic)).to.deep.equal([])
  })
})
