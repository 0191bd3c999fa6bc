import { Kafka, logLevel, Partitioners } from 'kafkajs'
import { openFactBus } from '../../src/adapters/kafka/factBus.ts'
import { publisherOf } from '../../src/feeds/publisher.ts'
import { realWorld } from '../../src/clockAndRandomness.ts'
import type { Database, FactBus, FactMessage } from '../../src/ports.ts'
import { noDeadLetters, openTables, runUntilCaughtUp } from './feedRuns.ts'
import type { StoreAddresses } from './harness.ts'
import { historyOn } from './paymentLog.ts'
import { type Measure, rowOf } from './measure.ts'

/** Benchmark: the publisher against kafkajs alone. */

const ROUNDS = 2
const GOAL = { atLeast: 0.8 }
const BATCH = 1_000
const ALL_REPLICAS = -1

const quiet = { info: () => undefined, warn: () => undefined, debug: () => undefined }

const fromTheLog = async (addresses: StoreAddresses, database: Database, bus: FactBus): Promise<number> => {
  await database.sql(`delete from checkpoints where name = 'publisher'`)
  return runUntilCaughtUp(addresses, database, [
    publisherOf({ database, bus, store: noDeadLetters, world: realWorld() }),
  ])
}

/** The messages of the publisher, recorded by a bus that sends nothing. */
const messagesIn = async (addresses: StoreAddresses, database: Database): Promise<FactMessage[]> => {
  const messages: FactMessage[] = []
  const nobody: FactBus = {
    ensureTopics: async () => undefined,
    publish: async some => void messages.push(...some),
    close: async () => undefined,
  }
  await fromTheLog(addresses, database, nobody)
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

const run: Measure['run'] = async (harness, { payments }) => {
  const brokers = await harness.kafka()
  if (brokers === undefined) return []
  const addresses = await harness.stores()
  await historyOn(harness, payments)
  const database = await openTables(addresses)
  const bus = openFactBus({ brokers, clientId: 'bench', logger: quiet })
  try {
    const messages = await messagesIn(addresses, database)
    let ours = 0
    let reference = 0
    await fromTheLog(addresses, database, bus)
    await raw(brokers, messages)
    for (let round = 1; round <= ROUNDS; round++) {
      harness.log(`publishing ${messages.length} facts, ${round} of ${ROUNDS}`)
      ours += await fromTheLog(addresses, database, bus)
      reference += await raw(brokers, messages)
    }
    const sent = ROUNDS * messages.length
    const note = `${messages.length} facts from the log, checkpoints included, against kafkajs alone, acks = all`
    return [rowOf({ measure: 'publish', ours: sent / ours, reference: sent / reference, unit: '/s', goal: GOAL, note })]
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
