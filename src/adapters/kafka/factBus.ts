import { propagation } from '@opentelemetry/api'
import { CompressionTypes, type Message, type TopicMessages } from 'kafkajs'
import { BrokerAccessDenied, type FactBus, type FactMessage, FactTooLarge, Unavailable } from '../../ports.ts'
import { ACK_TIMEOUT_MS, type FactBusOptions, openClient, protocolErrorOf, refusalOf } from './client.ts'
import { grantReading, revokeReading } from './acls.ts'
import { deleteTopics, ensureTopics } from './topicAdministration.ts'
import { backoffMs, jittered, sleep } from '../../lib/time.ts'

/** Less than the broker's default limit of 1,048,588 bytes, which includes the record batch header. */
const REQUEST_BYTES_MAX = 1_040_000
/** Upper bounds of the lengths, attributes and deltas around a record, and around each of its headers. */
const RECORD_OVERHEAD_BYTES = 40
const HEADER_OVERHEAD_BYTES = 10
/** After this time no further attempt begins, and the caller, which keeps the checkpoint, decides. */
const PUBLISH_DEADLINE_MS = 10_000
/** A topic that was just created may be unknown for a moment; after that, no attempt succeeds until it is created. */
const UNKNOWN_TOPIC_MAX_MS = 1_000
const CLOSE_GRACE_MS = 5_000
const PAUSE_MIN_MS = 50
const PAUSE_MAX_MS = 1_000
const ALL_REPLICAS = -1

type Delivery = { effect: Unavailable['effect']; readonly beganAtMs: number; readonly deadline: number }
type Connection = Awaited<ReturnType<typeof connect>>

/** OpenTelemetry adds a traceparent to the headers that it reads. A fact keeps its own, so every read returns a copy. */
const guardedRecordOf = ({ key, value, headers }: FactMessage): Message => ({
  key,
  value,
  get headers() {
    return { ...headers }
  },
  set headers(_injected) {},
})

/** Upper bound for ASCII headers, which are not counted one by one. A request that is too large is halved (`split`). */
const bytesOf = ({ key, value, headers }: FactMessage): number => {
  let bytes = RECORD_OVERHEAD_BYTES + Buffer.byteLength(value) + Buffer.byteLength(key)
  for (const name in headers) {
    bytes += HEADER_OVERHEAD_BYTES + name.length + (headers[name] ?? '').length
  }
  return bytes
}

/** Consecutive facts that fit into one request. Order is kept across and within chunks. */
const chunked = (facts: readonly FactMessage[]): FactMessage[][] => {
  const chunks: FactMessage[][] = []
  // Without room at first, so the first fact opens a chunk.
  let roomBytes = 0
  for (const fact of facts) {
    const bytes = bytesOf(fact)
    if (bytes > REQUEST_BYTES_MAX) throw new FactTooLarge(fact)
    roomBytes -= bytes
    if (roomBytes < 0) {
      chunks.push([])
      roomBytes = REQUEST_BYTES_MAX - bytes
    }
    chunks.at(-1)?.push(fact)
  }
  return chunks
}

/** Only where tracing is on are records guarded: kafkajs copies each, which costs several times as much then. */
const byTopic = (chunk: readonly FactMessage[]): TopicMessages[] => {
  const isTraced = propagation.fields().length > 0
  const facts = Map.groupBy(chunk, ({ topic }) => topic)
  return [...facts].map(([topic, ofTopic]) => ({ topic, messages: isTraced ? ofTopic.map(guardedRecordOf) : ofTopic }))
}

const connect = async (options: FactBusOptions) => {
  const client = openClient(options)
  const producer = client.producer()
  try {
    await producer.connect()
    return { client, producer }
  } catch (error) {
    client.drop()
    throw error
  }
}

const isTooLarge = (error: unknown): boolean =>
  ['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE'].includes(protocolErrorOf(error) ?? '')

const isUnknownTopic = (error: unknown): boolean => protocolErrorOf(error) === 'UNKNOWN_TOPIC_OR_PARTITION'

/**
 * Sends chunks over one connection, which is opened on first use and again after every failure.
 *
 * The retry loop is here, because that of kafkajs resends only to the brokers that have not answered yet, and so can
 * lose the messages of a partition whose leader moves to one that has.
 *
 * Long because the steps of a delivery share the connection and call each other.
 */
const createProducer = (options: FactBusOptions, closing: AbortSignal) => {
  let connection: Connection | undefined

  const drop = (): void => {
    connection?.client.drop()
    connection = undefined
  }

  const attempt = async (chunk: readonly FactMessage[], delivery: Delivery): Promise<void> => {
    connection ??= await connect(options)
    delivery.effect = 'unknown'
    await connection.producer.sendBatch({
      acks: ALL_REPLICAS,
      timeout: ACK_TIMEOUT_MS,
      compression: CompressionTypes.None,
      topicMessages: byTopic(chunk),
    })
  }

  const pauseOrGiveUp = async (tries: number, delivery: Delivery, error: unknown): Promise<void> => {
    const pauseMs = jittered(backoffMs(tries, PAUSE_MIN_MS, PAUSE_MAX_MS))
    const deadline = isUnknownTopic(error) ? delivery.beganAtMs + UNKNOWN_TOPIC_MAX_MS : delivery.deadline
    const late = performance.now() + pauseMs > Math.min(deadline, delivery.deadline)
    if (late || closing.aborted) throw new Unavailable('fact bus', { effect: delivery.effect, cause: error })
    await sleep(pauseMs, closing)
  }

  /**
   * The limit of a topic may be lower than the broker's: halves are tried, down to the one message that is too large.
   */
  const split = async (chunk: readonly FactMessage[], delivery: Delivery, error: unknown): Promise<void> => {
    const [first, ...others] = chunk
    if (first !== undefined && others.length === 0) throw new FactTooLarge(first, error)
    const middle = Math.ceil(chunk.length / 2)
    await deliver(chunk.slice(0, middle), delivery)
    await deliver(chunk.slice(middle), delivery)
  }

  const deliver = async (chunk: readonly FactMessage[], delivery: Delivery): Promise<void> => {
    for (let tries = 0; ; tries++) {
      try {
        return await attempt(chunk, delivery)
      } catch (error) {
        if (isTooLarge(error)) return split(chunk, delivery, error)
        drop()
        const refusal = refusalOf(error, options)
        if (refusal !== undefined) throw new BrokerAccessDenied(refusal, error)
        await pauseOrGiveUp(tries, delivery, error)
      }
    }
  }

  const deliverAll = async (chunks: readonly FactMessage[][]): Promise<void> => {
    const beganAtMs = performance.now()
    const deadline = beganAtMs + (options.publishDeadlineMs ?? PUBLISH_DEADLINE_MS)
    const delivery: Delivery = { effect: 'none', beganAtMs, deadline }
    for (const chunk of chunks) await deliver(chunk, delivery)
  }
  return { deliverAll, drop }
}

/**
 * Publishes facts to Kafka, at least once and in order per key, with the acknowledgement of all replicas.
 *
 * One request is in flight at a time, over all calls. Two in flight could be stored as "second, first" when the first
 * is lost and sent again. Calls that wait behind a failing one therefore fail too (effect `none`): they would overtake
 * the messages that their caller is about to send again.
 *
 * Connects on first use. Throws Unavailable if the broker does not answer, FactTooLarge, BrokerAccessDenied for wrong
 * credentials or permissions, and TopicMismatch from ensureTopics.
 *
 * Long because it has every method of the port.
 */
export const openFactBus = (options: FactBusOptions): FactBus => {
  const closing = new AbortController()
  const { deliverAll, drop } = createProducer(options, closing.signal)
  let last: Promise<void> = Promise.resolve()

  const afterPrevious = async (before: Promise<void>, chunks: readonly FactMessage[][]): Promise<void> => {
    await before.catch((cause: unknown) => {
      throw new Unavailable('fact bus', { effect: 'none', cause })
    })
    try {
      await deliverAll(chunks)
    } catch (error) {
      // Calls that wait already hold `before` and fail with it; later calls start from a resolved promise.
      last = Promise.resolve()
      throw error
    }
  }

  const throwIfClosed = (): void => {
    if (closing.signal.aborted)
      throw new Unavailable('fact bus', { effect: 'none', cause: new Error('It was closed.') })
  }

  return {
    async ensureTopics(topics) {
      throwIfClosed()
      await ensureTopics(options, topics)
    },
    async deleteTopics(topics) {
      throwIfClosed()
      await deleteTopics(options, topics)
    },
    async grantReading(principal, rights) {
      throwIfClosed()
      return grantReading(options, principal, rights)
    },
    async revokeReading(rights) {
      throwIfClosed()
      await revokeReading(options, rights)
    },
    async publish(messages) {
      throwIfClosed()
      const published = afterPrevious(last, chunked(messages))
      last = published
      await published
    },
    async close() {
      closing.abort()
      const grace = new AbortController()
      await Promise.race([last.catch(() => undefined), sleep(CLOSE_GRACE_MS, grace.signal)])
      grace.abort()
      drop()
    },
  }
}
