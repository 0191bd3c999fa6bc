import { randomUUID } from 'node:crypto'
import type { Admin, EachBatchPayload, KafkaMessage } from 'kafkajs'
import pLimit from 'p-limit'
import { categoryOfTopic, MANIFEST_TOPICS } from '../../../projections/factTopics.ts'
import { type FactBusOptions, type KafkaClient, refusalOf } from '../../../src/adapters/kafka/client.ts'
import { hasNoCoordinator, repeatTransient } from '../../../src/adapters/kafka/transientErrors.ts'
import type { EventStore } from '../../../src/ports.ts'
import { counted } from '../print.ts'
import { type Check, finding, notUsed, ok, orNotChecked } from './finding.ts'

/**
 * Whether the newest facts in Kafka are in the log. Once the log was restored to an earlier moment, those that it has lost are
 * not, and consumers have them.
 */

const CHECK = 'published facts'
/** Of each partition: the work does not grow with the topics. */
const FACTS_COMPARED = 10n
const READS_AT_ONCE = 16
/** A broker lets the first member of a group wait for others, for 3 s by default. */
const CHECK_MAX_MS = 20_000
const REFUSED_MAX_MS = 8_000
const GROUP_PREFIX = 'ledger-doctor-'
/** The service itself needs no group, so this is no finding. */
const NO_GROUP = `Kafka names no coordinator for a consumer group. Permit this user to read in groups ${GROUP_PREFIX}*.`

type Range = { readonly topic: string; readonly partition: number; readonly from: bigint; readonly end: bigint }

type Published = {
  readonly topic: string
  readonly id: string
  readonly type: string
  readonly subject: string
  readonly sequence: string
}

/** The last offsets of each partition that is not empty. */
const newestRanges = async (admin: Admin): Promise<readonly Range[]> => {
  const existing = new Set(await admin.listTopics())
  const ofTopics = MANIFEST_TOPICS.filter(topic => existing.has(topic)).map(async topic =>
    (await admin.fetchTopicOffsets(topic)).flatMap(({ partition, low, high }) => {
      const [begin, end] = [BigInt(low), BigInt(high)]
      const from = end - FACTS_COMPARED > begin ? end - FACTS_COMPARED : begin
      return from === end ? [] : [{ topic, partition, from, end }]
    }),
  )
  return (await Promise.all(ofTopics)).flat()
}

const publishedOf = (topic: string, { headers = {} }: Pick<KafkaMessage, 'headers'>): Published => {
  const { ce_id, ce_type, ce_subject, ce_sequence } = headers
  return { topic, id: String(ce_id), type: String(ce_type), subject: String(ce_subject), sequence: String(ce_sequence) }
}

/** kafkajs reads in groups alone. The broker forgets this one when it ends, because it commits nothing. */
const readRanges = async (client: KafkaClient, ranges: readonly Range[]): Promise<readonly Published[]> => {
  const consumer = client.consumer(`${GROUP_PREFIX}${randomUUID()}`)
  const missing = new Map(ranges.map(({ topic, partition, end }) => [`${topic}/${partition}`, end]))
  const facts: Published[] = []
  const { promise: complete, resolve, reject } = Promise.withResolvers<void>()
  complete.catch(() => undefined)
  consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error))
  const takeBatch = async (payload: EachBatchPayload): Promise<void> => {
    const { batch } = payload
    const place = `${batch.topic}/${batch.partition}`
    const end = missing.get(place)
    if (end === undefined || payload.isStale()) return
    for (const message of batch.messages)
      if (BigInt(message.offset) < end) facts.push(publishedOf(batch.topic, message))
    if (BigInt(batch.lastOffset()) + 1n >= end) missing.delete(place)
    if (missing.size === 0) resolve()
  }
  try {
    await consumer.connect()
    await consumer.subscribe({ topics: [...new Set(ranges.map(({ topic }) => topic))] })
    const started = consumer.run({ autoCommit: false, eachBatch: takeBatch }).then(() => {
      for (const { topic, partition, from } of ranges) consumer.seek({ topic, partition, offset: `${from}` })
      return complete
    })
    // A consumer that has crashed cannot seek, which would hide why.
    await Promise.race([complete, started])
    return facts
  } finally {
    await consumer.disconnect()
  }
}

/** A fact has the id and the revision of its event, and the id of its stream. */
const isInLog = async (store: EventStore, { topic, id, subject, sequence }: Published): Promise<boolean> => {
  if (!/^\d+$/.test(sequence)) return false
  const stream = `${categoryOfTopic(topic)}-${subject}`
  for await (const event of store.readStream(stream, { from: BigInt(sequence), limit: 1 })) return event.id === id
  return false
}

export type PublishedFacts = {
  readonly client: KafkaClient
  readonly admin: Admin
  readonly store: EventStore
  readonly options: FactBusOptions
}

const compare = async ({ client, admin, store }: Omit<PublishedFacts, 'options'>): Promise<Check> => {
  const ranges = await repeatTransient(() => newestRanges(admin), REFUSED_MAX_MS)
  if (ranges.length === 0) return ok(CHECK, 'none yet')
  const facts = await repeatTransient(() => readRanges(client, ranges), REFUSED_MAX_MS)
  const limit = pLimit(READS_AT_ONCE)
  const present = await Promise.all(facts.map(fact => limit(() => isInLog(store, fact))))
  const lost = facts.filter((_, n) => !present[n])
  const newest = `the newest ${facts.length} in ${counted(ranges.length, 'partition')}`
  const [first] = lost
  if (first === undefined) return ok(CHECK, `${newest} are in the log`)
  return finding(
    CHECK,
    `Kafka is ahead of the log: of ${newest}, ${lost.length} are not in the log, such as ${first.type} of ${first.subject} in ${first.topic}`,
    'The log was restored to an earlier moment, and consumers have facts that it has lost. Follow drill 4 of ' +
      'scripts/ledger/DISASTER.md.',
  )
}

export const checkPublishedFacts = ({ options, ...compared }: PublishedFacts): Promise<Check> => {
  const work = (): Promise<Check> =>
    compare(compared).catch((error: unknown) => {
      const refusal = hasNoCoordinator(error) ? NO_GROUP : refusalOf(error, options)
      if (refusal === undefined) throw error
      return notUsed(CHECK, `not compared with the log: ${refusal}`)
    })
  return orNotChecked(CHECK, work, CHECK_MAX_MS)
}
