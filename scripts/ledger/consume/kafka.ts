import { type Admin, type EachBatchPayload, Kafka, type KafkaMessage, logLevel, type SASLOptions } from 'kafkajs'
import { isTransient, repeatTransient } from '../../../src/adapters/kafka/transientErrors.ts'
import { MANIFESTS_TOPIC } from '../../../src/commands/manifests.ts'
import { reasonOf } from '../../../src/lib/connectionFailures.ts'
import type { KafkaConfig as Settings } from '../../../src/settings/config.ts'
import { StartupError } from '../../../src/lib/startupError.ts'
import type { Copy } from './copy.ts'
import { type Fact, factSchema } from './fact.ts'

type KafkaConsumer = {
  readonly kafka: Pick<Settings, 'brokers'> & Partial<Settings>
  readonly copy: Copy
  readonly follow: boolean
  readonly signal: AbortSignal
  readonly onProgress: () => void
  /** How long transient refusals are waited for without progress; REFUSED_MAX_MS by default. */
  readonly refusedMaxMs?: number
}

const CLIENT = 'ledger-consume'
/** The broker's fetch wait for a consumer at the tail. */
const MAX_WAIT_MS = 250
/** The session timeout, the shortest that brokers accept: a killed consumer keeps its partitions for this time. */
const SESSION_MS = 6_000
const HEARTBEAT_MS = 1_500
/** Longer than a broker takes to start, or to move what it leads to another one. */
const REFUSED_MAX_MS = 60_000
const WATCH_EVERY_MS = 1_000

const clientOf = ({ brokers, ssl, sasl }: KafkaConsumer['kafka']): Kafka =>
  new Kafka({
    clientId: CLIENT,
    brokers: [...brokers],
    ...(ssl !== undefined && { ssl }),
    ...(sasl && { sasl: { ...sasl } as SASLOptions }),
    logLevel: logLevel.NOTHING,
  })

const PREFIX = 'ce_'

/** A CloudEvent in binary mode: attributes are headers, the value is the data. Equal to the fact over HTTP. */
const factOf = ({ headers = {}, value }: Pick<KafkaMessage, 'headers' | 'value'>): Fact => {
  const named = Object.entries(headers).map(([name, header]) => [name, String(header)] as const)
  const attributes = named.flatMap(([name, text]) =>
    name.startsWith(PREFIX) ? [[name.slice(PREFIX.length), text]] : [],
  )
  const { 'content-type': datacontenttype, traceparent } = Object.fromEntries(named)
  return factSchema.parse({
    ...Object.fromEntries(attributes),
    ...(datacontenttype === undefined ? {} : { datacontenttype }),
    ...(traceparent === undefined ? {} : { traceparent }),
    data: JSON.parse(String(value)),
  })
}

const factsIn = ({ topic, partition, messages }: EachBatchPayload['batch']): readonly Fact[] =>
  messages.map(message => {
    try {
      return factOf(message)
    } catch (error) {
      throw new StartupError(`The message at ${topic}/${partition}, offset ${message.offset}, is no fact.`, error)
    }
  })

/** The remaining work: the end offset of each partition that the group has not reached. */
const endsOf = async (admin: Admin, { topics, group }: { topics: readonly string[]; group: string }) => {
  const ends = new Map<string, bigint>()
  // The end of the manifests is read first, so that the facts that they count lie before the ends of the other topics.
  for (const topic of topics.toSorted((a, b) => Number(b === MANIFESTS_TOPIC) - Number(a === MANIFESTS_TOPIC))) {
    const [committed] = await admin.fetchOffsets({ groupId: group, topics: [topic] })
    const reached = new Map(committed?.partitions.map(({ partition, offset }) => [partition, BigInt(offset)]))
    for (const { partition, low, high } of await admin.fetchTopicOffsets(topic)) {
      const isRead = low === high || (reached.get(partition) ?? -1n) >= BigInt(high)
      if (!isRead) ends.set(`${topic}/${partition}`, BigInt(high))
    }
  }
  return ends
}

const readRemaining = async (client: Kafka, copy: Copy): Promise<Map<string, bigint>> => {
  const admin = client.admin()
  try {
    await admin.connect()
    return await endsOf(admin, copy.state())
  } finally {
    await admin.disconnect()
  }
}

const refusedFor = (ms: number, error: unknown): StartupError =>
  new StartupError(
    `Kafka has refused for ${ms / 1_000} s: ${reasonOf(error)}. If its brokers are starting, wait until they have, then run this ` +
      'command again.',
    error,
  )

const refusal = (error: unknown): StartupError =>
  new StartupError(`Kafka does not give what is asked for: ${error instanceof Error ? error.message : ''}`, error)

/** Long because the callbacks of one consumer share its progress and its end. */
export const consumeKafka = async (options: KafkaConsumer): Promise<void> => {
  const { kafka, copy, follow, signal, onProgress, refusedMaxMs = REFUSED_MAX_MS } = options
  const client = clientOf(kafka)
  const reading = repeatTransient(() => readRemaining(client, copy), refusedMaxMs, signal)
  const remaining = await reading.catch((error: unknown) => {
    throw isTransient(error) ? refusedFor(refusedMaxMs, error) : refusal(error)
  })
  if (signal.aborted || (!follow && remaining.size === 0)) return
  const { topics, group } = copy.state()
  const consumer = client.consumer({
    groupId: group,
    maxWaitTimeInMs: MAX_WAIT_MS,
    sessionTimeout: SESSION_MS,
    heartbeatInterval: HEARTBEAT_MS,
  })
  const { promise: ended, resolve: end, reject: fail } = Promise.withResolvers<void>()
  signal.addEventListener('abort', () => end(), { once: true })
  ended.catch(() => undefined)
  let progressAtMs = performance.now()
  let trouble: unknown = new Error('it delivers nothing, or accepts no progress')
  consumer.on(consumer.events.CRASH, ({ payload: { restart, error } }) => {
    trouble = error
    if (!restart) fail(error)
  })
  // kafkajs repeats without limit, which is right for a consumer that follows.
  const watch = setInterval(() => {
    if (!follow && performance.now() - progressAtMs > refusedMaxMs) fail(refusedFor(refusedMaxMs, trouble))
  }, WATCH_EVERY_MS)
  let isBroken = false
  const takeBatch = async (payload: EachBatchPayload): Promise<void> => {
    const { batch } = payload
    const { topic, partition } = batch
    // After a failed batch no later one is written, since its offset would cover the failed one.
    if (isBroken || !payload.isRunning() || payload.isStale()) return
    try {
      await copy.write(factsIn(batch))
    } catch (error) {
      isBroken = true
      return fail(error)
    }
    const offset = BigInt(batch.lastOffset()) + 1n
    await consumer.commitOffsets([{ topic, partition, offset: offset.toString() }])
    onProgress()
    progressAtMs = performance.now()
    const place = `${topic}/${partition}`
    if (offset >= (remaining.get(place) ?? 0n)) remaining.delete(place)
    if (!follow && remaining.size === 0) end()
  }
  try {
    await consumer.connect()
    await consumer.subscribe({ topics: [...topics], fromBeginning: true })
    await consumer.run({ autoCommit: false, eachBatch: takeBatch })
    progressAtMs = performance.now()
    await ended
  } finally {
    clearInterval(watch)
    await consumer.disconnect()
  }
}
