import { setTimeout as delay } from 'node:timers/promises'
import kafkajs, { type Admin } from 'kafkajs'
import type { TopicSettings } from '../ports.ts'
import { TopicMismatch, withAdmin } from './kafkaAdmin.ts'
import { type FactBusOptions, protocolErrorOf } from './kafkaClient.ts'

const REPLICAS_MAX = 3
/** With three replicas an acknowledgement means two disks: one broker may be down, and none may be lost. */
const IN_SYNC_OF_THREE = 2
const RETENTION = 'retention.ms'
const LEADERS_DEADLINE_MS = 15_000
const LEADERS_POLL_MS = 50
/** Right after its creation a topic is not yet known to every broker. */
const SETTLING = new Set(['UNKNOWN_TOPIC_OR_PARTITION', 'LEADER_NOT_AVAILABLE', 'NOT_LEADER_FOR_PARTITION'])

const create = async (admin: Admin, missing: readonly TopicSettings[]): Promise<void> => {
  const { brokers } = await admin.describeCluster()
  const replicationFactor = Math.min(REPLICAS_MAX, brokers.length)
  const inSync = replicationFactor === REPLICAS_MAX ? IN_SYNC_OF_THREE : 1
  await admin.createTopics({
    waitForLeaders: false,
    topics: missing.map(({ topic, partitions, retentionMs }) => ({
      topic,
      numPartitions: partitions,
      replicationFactor,
      configEntries: [
        { name: RETENTION, value: String(retentionMs) },
        { name: 'min.insync.replicas', value: String(inSync) },
      ],
    })),
  })
}

/**
 * The number of partitions by topic, or undefined as long as some partition is unknown or has no leader. A broker tells
 * of its leadership before it takes it up: only one that answers for the offsets of a partition also takes messages.
 */
const partitionsWithLeaders = async (admin: Admin, names: string[]): Promise<Map<string, number> | undefined> => {
  try {
    const { topics } = await admin.fetchTopicMetadata({ topics: names })
    const led = topics.every(({ partitions }) => partitions.every(({ leader }) => leader >= 0))
    if (led) await Promise.all(names.map(name => admin.fetchTopicOffsets(name)))
    return led ? new Map(topics.map(({ name, partitions }) => [name, partitions.length])) : undefined
  } catch (error) {
    if (SETTLING.has(protocolErrorOf(error) ?? '')) return undefined
    throw error
  }
}

const awaitLeaders = async (admin: Admin, names: string[]): Promise<Map<string, number>> => {
  const deadline = performance.now() + LEADERS_DEADLINE_MS
  for (;;) {
    const found = await partitionsWithLeaders(admin, names)
    if (found !== undefined) return found
    if (performance.now() > deadline) throw new Error(`Some partitions of ${names.join(', ')} have no leader.`)
    await delay(LEADERS_POLL_MS)
  }
}

const retentions = async (admin: Admin, names: readonly string[]): Promise<Map<string, string>> => {
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: names.map(name => ({ type: kafkajs.ConfigResourceTypes.TOPIC, name, configNames: [RETENTION] })),
  })
  return new Map(
    resources.map(resource => [
      resource.resourceName,
      resource.configEntries.find(entry => entry.configName === RETENTION)?.configValue ?? 'unset',
    ]),
  )
}

const ensure = async (admin: Admin, topics: readonly TopicSettings[]): Promise<void> => {
  const present = new Set(await admin.listTopics())
  const missing = topics.filter(({ topic }) => !present.has(topic))
  if (missing.length > 0) await create(admin, missing)
  const names = topics.map(({ topic }) => topic)
  // Both are read back for new topics too: another process may have made them between our look and our creation.
  const partitionsOf = await awaitLeaders(admin, names)
  const retentionOf = await retentions(admin, names)
  const differences = topics.flatMap(({ topic, partitions, retentionMs }) => [
    ...compare(topic, 'partitions', String(partitionsOf.get(topic)), String(partitions)),
    ...compare(topic, RETENTION, String(retentionOf.get(topic)), String(retentionMs)),
  ])
  if (differences.length > 0) throw new TopicMismatch(differences)
}

const compare = (topic: string, setting: string, found: string, wanted: string): string[] =>
  found === wanted ? [] : [`${topic} has ${setting} ${found}, wanted ${wanted}`]

/**
 * Creates the topics that are missing and waits until each partition has a leader. Throws TopicMismatch naming the
 * values found and wanted, FactBusRefused, or Unavailable.
 */
export const ensureTopics = async (options: FactBusOptions, topics: readonly TopicSettings[]): Promise<void> => {
  if (topics.length > 0) await withAdmin(options, admin => ensure(admin, topics))
}

const remove = async (admin: Admin, topic: string): Promise<void> => {
  try {
    await admin.deleteTopics({ topics: [topic] })
  } catch (error) {
    if (protocolErrorOf(error) !== 'UNKNOWN_TOPIC_OR_PARTITION') throw error
  }
}

/**
 * One by one, since one that is gone would hide what became of the others; and only those that are there, since kafkajs
 * takes a topic that is unknown for one that is not known yet. Throws FactBusRefused or Unavailable.
 */
export const deleteTopics = (options: FactBusOptions, topics: readonly string[]): Promise<void> =>
  withAdmin(options, async admin => {
    const present = new Set(await admin.listTopics())
    for (const topic of topics) if (present.has(topic)) await remove(admin, topic)
  })
