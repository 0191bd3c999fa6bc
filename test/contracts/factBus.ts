import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import type { FactProducer } from '../../src/ports.ts'
import {
  CALLS,
  expectUnavailable,
  fact,
  type FactBusHarness,
  newTopic,
  numbered,
  RETENTION_MS,
  upTo,
  valuesByKey,
} from './factBusFixtures.ts'
import { rejectionOf } from '../support/rejection.ts'

const MANY = 10_000

/** The contract of all fact buses for publishing, with an available broker. `createsTopics`: false where the broker cannot. */
export const factBusContract = (harness: () => FactBusHarness, createsTopics: boolean): void => {
  let bus: FactProducer
  let topic: string

  beforeEach(async () => {
    bus = harness().open()
    const settings = newTopic()
    topic = settings.topic
    if (createsTopics) await bus.ensureTopics([settings])
  })
  afterEach(() => bus.close())

  it('keeps the order of each key, over interleaved keys and several calls', async () => {
    await bus.publish(numbered(topic, 7, 70))
    await bus.publish(numbered(topic, 7, 70, 10))
    const values = valuesByKey(await harness().read(topic))
    expect(values.size).to.equal(7)
    for (const ofKey of values.values()) expect(ofKey).to.deep.equal(upTo(20))
  })

  it('keeps key, headers and value byte for byte', async () => {
    const headers = { ce_id: randomUUID(), empty: '', 'content-type': 'application/json', näme: 'ünï ✓ 𝄞 "quoted"' }
    const value = `{"a":"\\u0000 \\ud83d","b":"𝄞 ✓ ${'é'.repeat(5_000)}"}`
    await bus.publish([fact(topic, 'inv_ключ', value, headers), fact(topic, 'inv_2', '')])
    const [first, second] = [...(await harness().read(topic))].sort((a, b) => b.value.length - a.value.length)
    expect(first).to.deep.include({ key: 'inv_ключ', value, headers })
    expect(second).to.deep.include({ key: 'inv_2', value: '', headers: {} })
  })

  it('publishes ten thousand messages of one call, each once', async () => {
    await bus.publish(numbered(topic, 100, MANY))
    const read = await harness().read(topic)
    expect(read).to.have.length(MANY)
    for (const ofKey of valuesByKey(read).values()) expect(ofKey).to.deep.equal(upTo(MANY / 100))
  })

  it('publishes more than one request can hold, in order', async () => {
    const megabytes = Array.from({ length: 15 }, (_, index) => fact(topic, 'inv_1', `${index} ${'x'.repeat(200_000)}`))
    await bus.publish(megabytes)
    const values = valuesByKey(await harness().read(topic)).get('inv_1')
    expect(values?.map(value => value.split(' ')[0])).to.deep.equal(upTo(15))
  })

  it('resolves for an empty call', async () => {
    await bus.publish([])
    expect(await harness().read(topic)).to.deep.equal([])
  })

  it('keeps concurrent calls in the order in which they were made', async () => {
    await Promise.all(Array.from({ length: CALLS }, (_, call) => bus.publish(numbered(topic, 3, 30, call * 10))))
    for (const ofKey of valuesByKey(await harness().read(topic)).values()) {
      expect(ofKey).to.deep.equal(upTo(CALLS * 10))
    }
  })

  it('delivers all acknowledged calls when it is closed while publishing, and accepts no more', async () => {
    const calls = Array.from({ length: CALLS }, (_, call) => bus.publish(numbered(topic, 3, 30, call * 10)))
    const outcomes = Promise.allSettled(calls)
    await bus.close()
    const kept = (await outcomes).filter(({ status }) => status === 'fulfilled').length
    expectUnavailable(await rejectionOf(bus.publish(numbered(topic, 1, 1))), 'none')
    const seen = [...valuesByKey(await harness().read(topic)).values()]
    expect(kept).to.be.greaterThan(0)
    for (const ofKey of seen) expect(ofKey.slice(0, kept * 10)).to.deep.equal(upTo(kept * 10))
  })

  if (createsTopics) {
    it('accepts topics that exist already', async () => {
      const other = newTopic()
      await bus.ensureTopics([other])
      await bus.publish(numbered(other.topic, 1, 1))
      await bus.ensureTopics([other, { ...newTopic() }])
      expect(await harness().read(other.topic)).to.have.length(1)
    })

    it('lets two processes create the same topics at once', async () => {
      const topics = [newTopic(), newTopic()]
      const second = harness().open()
      await Promise.all([bus.ensureTopics(topics), second.ensureTopics(topics)])
      await second.close()
      for (const { topic: name } of topics) await bus.publish(numbered(name, 12, 12))
    })

    it('names both values when a topic has other partitions', async () => {
      const wrong = { topic, partitions: 3, retentionMs: RETENTION_MS }
      const { message } = await rejectionOf(bus.ensureTopics([newTopic(), wrong]))
      expect(message).to.contain(`${topic} has partitions 12, wanted 3`)
    })
  }
}
