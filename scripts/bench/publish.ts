import { Kafka, logLevel, Partitioners } from 'kafkajs'
import { openFactBus } from '../../src/adapters/kafka/factBus.ts'
import { publisherOf } from '../../src/feeds/publisher.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import type { Database, FactMessage, FactProducer } from '../../src/ports.ts'
import { noDeadLetters, openTables, runUntilCaughtUp } from './feedRuns.ts'
import type { StoreAddresses } from './harness.ts'
import { historyOn } from './paymentLog.ts'
import { type Measure, rowOf } from './measure.ts'
import { WrongAnswers } from './answers.ts'

const GOAL = { atLeast: 0.7 }
const BATCH = 1_000
const ALL_REPLICAS = -1

const quiet = { info: () => undefined, warn: () => undefined, debug: () => undefined }

const fromTheLog = async (addresses: StoreAddresses, database: Database, bus: FactProducer): Promise<number> => {
  await database.sql(`delete from checkpoints where name = 'publisher'`)
  return runUntilCaughtUp(addresses, database, [
    publisherOf({ database, bus, store: noDeadLetters, world: realWorld() }),
  ])
}

/** The messages of the publisher, recorded by a bus that sends nothing. */
const messagesIn = async (addresses: StoreAddresses, database: Database): Promise<FactMessage[]> => {
  const messages: FactMessage[] = []
  const recorder: FactProducer = {
    ensureTopics: async () => undefined,
    publish: async some => void messages.push(...some),
    close: async () => undefined,
  }
  await fromTheLog(addresses, database, recorder)
  return messages
}

const byTopic = (messages: readonly FactMessage[]) =>
  [...Map.groupBy(messages, ({ topic }) => topic)].map(([topic, some]) => ({
    topic,
    messages: some.map(({ key, value, headers }) => ({ key, value, headers })),
  }))

/** Sends the same messages with the same acknowledgements, but from memory instead of the log. */
const raw = async (brokers: readonly string[], messages: readonly FactMessage[]): Promise<number> => {
  const kafka = new Kafka({ brokers: [...brokers], clientId: 'bench', logLevel: logLevel.NOTHING })
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  try {
    const begun = performance.now()
    for (let at = 0; at < messages.length; at += BATCH)
      await producer.sendBatch({ acks: ALL_REPLICAS, topicMessages: byTopic(messages.slice(at, at + BATCH)) })
    return (performance.now() - begun) / 1000
  } finally {
    await producer.disconnect()
  }
}

/** Throws unless `sent` are the messages of the log, each once. `ids` are in no order, since keys have partitions. */
export const checkIds = (expected: readonly string[], sent: readonly string[]): void => {
  const counts = new Map(expected.map(id => [id, 0]))
  for (const id of sent) counts.set(id, (counts.get(id) ?? 0) + (counts.has(id) ? 1 : Number.NaN))
  const differences = [...counts].filter(([, count]) => count !== 1)
  if (differences.length === 0) return
  throw new WrongAnswers(
    differences.map(([id, count]) => `${id} was ${Number.isNaN(count) ? 'not to be sent' : `sent ${count} times`}.`),
  )
}

const idsOf = (messages: readonly FactMessage[]): string[] => messages.map(({ headers }) => headers['ce_id'] ?? '')

/** The number of messages in the topics, as the broker counts them. */
const storedIn = async (brokers: readonly string[], topics: readonly string[]): Promise<number> => {
  const admin = new Kafka({ brokers: [...brokers], clientId: 'bench', logLevel: logLevel.NOTHING }).admin()
  await admin.connect()
  try {
    const offsets = await Promise.all(topics.map(topic => admin.fetchTopicOffsets(topic)))
    return offsets.flat().reduce((sum, { high }) => sum + Number(high), 0)
  } finally {
    await admin.disconnect()
  }
}

/** Both sides, each of which throws unless it sent exactly the messages of the log. */
const sidesOf = (
  brokers: readonly string[],
  messages: readonly FactMessage[],
  publishAll: (onSent: (some: readonly FactMessage[]) => void) => Promise<number>,
) => {
  const topics = [...new Set(messages.map(({ topic }) => topic))]
  const counted = async (send: () => Promise<number>): Promise<number> => {
    const before = await storedIn(brokers, topics)
    const seconds = await send()
    const added = (await storedIn(brokers, topics)) - before
    if (added === messages.length) return seconds
    throw new WrongAnswers([`${messages.length} messages were due, and the broker has ${added} more.`])
  }
  return {
    reference: () => counted(() => raw(brokers, messages)),
    ours: () =>
      counted(async () => {
        const sent: string[] = []
        const seconds = await publishAll(some => void sent.push(...idsOf(some)))
        checkIds(idsOf(messages), sent)
        return seconds
      }),
  }
}

const run: Measure['run'] = async (harness, size) => {
  const brokers = await harness.kafka()
  if (brokers === undefined) return { rows: [] }
  const addresses = await harness.stores()
  await historyOn(harness, size.payments)
  const database = await openTables(addresses)
  const bus = openFactBus({ brokers, clientId: 'bench', logger: quiet })
  try {
    const messages = await messagesIn(addresses, database)
    const { ours, reference } = sidesOf(brokers, messages, onSent =>
      fromTheLog(addresses, database, { ...bus, publish: some => bus.publish(some).then(() => onSent(some)) }),
    )
    await fromTheLog(addresses, database, bus)
    await raw(brokers, messages)
    const rates: { readonly ours: number[]; readonly reference: number[] } = { ours: [], reference: [] }
    while (rates.ours.length < size.rounds) {
      harness.log(`publishing ${messages.length} facts, ${rates.ours.length + 1} of ${size.rounds}`)
      rates.ours.push(messages.length / (await ours()))
      rates.reference.push(messages.length / (await reference()))
    }
    const note = `${messages.length} facts from the log, checkpoints included, against kafkajs alone, acks = all`
    return { rows: [rowOf({ measure: 'publish', ...rates, unit: '/s', goal: GOAL, note })] }
  } finally {
    await bus.close()
    await database.close()
  }
}

export const publish: Measure = {
  name: 'publish',
  description:
    'The publisher from position zero of a log to a real Kafka broker, against a raw kafkajs producer that sends the same ' +
    'messages from memory with the same acknowledgements. Needs Java and Maven.',
  run,
}
