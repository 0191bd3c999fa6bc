import { setTimeout as delay } from 'node:timers/promises'
import kafkajs, { type Admin } from 'kafkajs'
import type { TopicSettings } from '../../ports.ts'
import { TopicMismatch, withAdmin } from './adminClient.ts'
import { type FactBusOptions, protocolErrorOf } from './client.ts'

const REPLICAS_MAX = 3
/** An acknowledged message is on two disks at least, and facts can be sent while one broker is down. */
const IN_SYNC_OF_THREE = 2
const RETENTION = 'retention.ms'
const RETENTION_BYTES = 'retention.bytes'
const LEADERS_DEADLINE_MS = 15_000
const LEADERS_POLL_MS = 50
/** Errors of a topic that was just created and that not every broker knows yet. */
const NEW_TOPIC_ERRORS = new Set(['UNKNOWN_TOPIC_OR_PARTITION', 'LEADER_NOT_AVAILABLE', 'NOT_LEADER_FOR_PARTITION'])

const create = async (admin: Admin, missing: readonly TopicSettings[]): Promise<void> => {
  const { brokers } = await admin.describeCluster()
  const replicationFactor = Math.min(REPLICAS_MAX, brokers.length)
  const inSync = replicationFactor === REPLICAS_MAX ? IN_SYNC_OF_THREE : 1
  await admin.createTopics({
    waitForLeaders: false,
    topics: missing.map(({ topic, partitions, retentionMs, retentionBytes }) => ({
      topic,
      numPartitions: partitions,
      replicationFactor,
      configEntries: [
        { name: RETENTION, value: String(retentionMs) },
        ...(retentionBytes === undefined ? [] : [{ name: RETENTION_BYTES, value: String(retentionBytes) }]),
        { name: 'min.insync.replicas', value: String(inSync) },
      ],
    })),
  })
}

/**
 * Partitions by topic; undefined while one has no leader. The metadata names leaders before they act as one, so the
 * offsets are fetched too: a broker that returns them accepts messages.
 */
const partitionsWithLeaders = async (admin: Admin, names: string[]): Promise<Map<string, number> | undefined> => {
  try {
    const { topics } = await admin.fetchTopicMetadata({ topics: names })
    const led = topics.every(({ partitions }) => partitions.every(({ leader }) => leader >= 0))
    if (led) await Promise.all(names.map(name => admin.fetchTopicOffsets(name)))
    return led ? new Map(topics.map(({ name, partitions }) => [name, partitions.length])) : undefined
  } catch (error) {
    if (NEW_TOPIC_ERRORS.has(protocolErrorOf(error) ?? '')) return undefined
    throw error
  }
}

const awaitLeaders = async (admin: Admin, names: string[]): Promise<Map<string, number>> => {
  const deadline = performance.now() + LEADERS_DEADLINE_MS
  for (;;) {
    const partitions = await partitionsWithLeaders(admin, names)
    if (partitions !== undefined) return partitions
    if (performance.now() > deadline) throw new Error(`Some partitions of ${names.join(', ')} have no leader.`)
    await delay(LEADERS_POLL_MS)
  }
}

type Setting = { readonly name: string; readonly value: string }
type Configuration = { readonly set: readonly Setting[]; readonly effective: ReadonlyMap<string, string> }

const settingsOf = async (admin: Admin, names: readonly string[]): Promise<ReadonlyMap<string, Configuration>> => {
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: names.map(name => ({ type: kafkajs.ConfigResourceTypes.TOPIC, name })),
  })
  return new Map(
    resources.map(({ resourceName, configEntries }) => {
      const own = configEntries.filter(({ configSource }) => configSource === kafkajs.ConfigSource.TOPIC_CONFIG)
      const set = own.map(({ configName, configValue }) => ({ name: configName, value: configValue }))
      const effective = new Map(configEntries.map(({ configName, configValue }) => [configName, configValue]))
      return [resourceName, { set, effective }] as const
    }),
  )
}

const UNLIMITED = -1
/** Whether the retention is at least the promised one. A longer one is kept, since shortening it would delete facts. */
const isLongEnough = (retention: string, retentionMs: number): boolean =>
  Number(retention) === UNLIMITED || Number(retention) >= retentionMs

type Correction = Setting & { readonly topic: string; readonly difference: string }

/** The settings of a topic that differ from what is promised, or from what protects the broker's disks. */
const correctionsOf = (
  { topic, retentionMs, retentionBytes }: TopicSettings,
  effective: ReadonlyMap<string, string> = new Map(),
): readonly Correction[] => {
  const ms = effective.get(RETENTION) ?? 'unset'
  const bytes = effective.get(RETENTION_BYTES) ?? 'unset'
  const corrections: Correction[] = []
  if (!isLongEnough(ms, retentionMs)) {
    const difference = `${topic} has ${RETENTION} ${ms}, at least ${retentionMs} is promised`
    corrections.push({ topic, name: RETENTION, value: String(retentionMs), difference })
  }
  if (retentionBytes !== undefined && bytes !== String(retentionBytes)) {
    const difference = `${topic} has ${RETENTION_BYTES} ${bytes}, and SUBSCRIPTION_TOPIC_BYTES is ${retentionBytes}`
    corrections.push({ topic, name: RETENTION_BYTES, value: String(retentionBytes), difference })
  }
  return corrections
}

/** The request replaces all settings of a topic, so the present ones are sent too. */
const alteration = (topic: string, set: readonly Setting[], corrections: readonly Correction[]) => ({
  type: kafkajs.ConfigResourceTypes.TOPIC,
  name: topic,
  configEntries: [
    ...set.filter(({ name }) => corrections.every(correction => correction.name !== name)),
    ...corrections.map(({ name, value }) => ({ name, value })),
  ],
})

/** Corrects the retentions. Throws TopicMismatch with the commands if the broker does not permit it. */
const correctRetentions = async (admin: Admin, topics: readonly TopicSettings[]): Promise<void> => {
  const names = topics.map(({ topic }) => topic)
  const configurations = await settingsOf(admin, names)
  const corrections = topics.flatMap(topic => correctionsOf(topic, configurations.get(topic.topic)?.effective))
  if (corrections.length === 0) return
  const resources = [...Map.groupBy(corrections, ({ topic }) => topic)].map(([topic, ofTopic]) =>
    alteration(topic, configurations.get(topic)?.set ?? [], ofTopic),
  )
  try {
    await admin.alterConfigs({ validateOnly: false, resources })
  } catch (error) {
    if (protocolErrorOf(error) !== 'TOPIC_AUTHORIZATION_FAILED') throw error
    throw new TopicMismatch(
      corrections.map(({ topic, name, value, difference }) => {
        const command = `kafka-configs.sh --alter --entity-type topics --entity-name ${topic} --add-config ${name}=${value}`
        return `${difference}, and the broker does not let this service change it (${command})`
      }),
    )
  }
}

const ensure = async (admin: Admin, topics: readonly TopicSettings[]): Promise<void> => {
  const present = new Set(await admin.listTopics())
  const missing = topics.filter(({ topic }) => !present.has(topic))
  if (missing.length > 0) await create(admin, missing)
  const names = topics.map(({ topic }) => topic)
  // Read back for new topics too, because another process may have created them in between.
  const partitionsOf = await awaitLeaders(admin, names)
  const differences = topics.flatMap(({ topic, partitions }) => {
    const actual = partitionsOf.get(topic)
    return actual === partitions ? [] : [`${topic} has partitions ${actual}, wanted ${partitions}`]
  })
  // Another number of partitions would move keys between partitions and break their order, so it cannot be changed.
  if (differences.length > 0) throw new TopicMismatch(differences)
  await correctRetentions(admin, topics)
}

/** Creates topics with their leaders, and corrects retentions. Throws TopicMismatch, BrokerAccessDenied or Unavailable. */
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
 * One topic per request: the error of one would hide the results of others. Missing ones are skipped, since kafkajs
 * waits for them. Throws BrokerAccessDenied or Unavailable.
 */
export const deleteTopics = (options: FactBusOptions, topics: readonly string[]): Promise<void> =>
  withAdmin(options, async admin => {
    const present = new Set(await admin.listTopics())
    for (const topic of topics) if (present.has(topic)) await remove(admin, topic)
  })
