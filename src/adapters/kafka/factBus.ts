import { setTimeout as delay } from 'node:timers/promises'
import { CompressionTypes, type Message } from 'kafkajs'
import { type FactMessage, FactTooLarge, type SubscriberBus, Unavailable } from '../../ports.ts'
import {
  ACK_TIMEOUT_MS,
  type FactBusOptions,
  FactBusRefused,
  openClient,
  protocolErrorOf,
  refusalOf,
} from './client.ts'
import { grantReading, revokeReading } from './acls.ts'
import { deleteTopics, ensureTopics } from './topics.ts'

/** A broker takes 1,048,588 bytes by default; the rest is for the header that it counts with the records. */
const REQUEST_BYTES_MAX = 1_040_000
/** Lengths, attributes and deltas around a record, and around each header of it, are never longer than this. */
const RECORD_OVERHEAD_BYTES = 40
const HEADER_OVERHEAD_BYTES = 10
/** After this no further attempt begins: the caller, who keeps the checkpoint, decides. */
const PUBLISH_DEADLINE_MS = 10_000
const CLOSE_GRACE_MS = 5_000
const PAUSE_MIN_MS = 50
const PAUSE_MAX_MS = 1_000
const ALL_REPLICAS = -1

type ProducerRecord = { readonly fact: FactMessage; readonly record: Message; readonly bytes: number }
type Delivery = { effect: Unavailable['effect']; readonly deadline: number }
type Connection = Awaited<ReturnType<typeof connect>>

/**
 * OpenTelemetry's instrumentation of kafkajs writes a traceparent of its own into the headers that it sees. A fact keeps
 * the one that it was stored with, so that a redelivery is byte-identical: whoever looks is shown a copy.
 */
const recordOf = ({ key, headers }: FactMessage, value: Buffer): Message => ({
  key,
  value,
  get headers() {
    return { ...headers }
  },
  set headers(_injected) {},
})

const producerRecordOf = (fact: FactMessage): ProducerRecord => {
  const value = Buffer.from(fact.value)
  let bytes = RECORD_OVERHEAD_BYTES + value.length + Buffer.byteLength(fact.key)
  for (const name in fact.headers) {
    bytes += HEADER_OVERHEAD_BYTES + Buffer.byteLength(name) + Buffer.byteLength(fact.headers[name] ?? '')
  }
  if (bytes > REQUEST_BYTES_MAX) throw new FactTooLarge(fact)
  return { fact, record: recordOf(fact, value), bytes }
}

/** Consecutive messages that fit into one request; order is kept across and within the chunks. */
const chunked = (facts: readonly FactMessage[]): ProducerRecord[][] => {
  const chunks: ProducerRecord[][] = []
  let room = 0
  for (const fact of facts) {
    const one = producerRecordOf(fact)
    room -= one.bytes
    if (room < 0) {
      chunks.push([])
      room = REQUEST_BYTES_MAX - one.bytes
    }
    chunks.at(-1)?.push(one)
  }
  return chunks
}

const byTopic = (chunk: readonly ProducerRecord[]): { topic: string; messages: Message[] }[] =>
  [...Map.groupBy(chunk, one => one.fact.topic)].map(([topic, records]) => ({
    topic,
    messages: records.map(one => one.record),
  }))

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

/**
 * Delivers chunks over one connection, which is opened when it is first needed and again after every failure.
 *
 * The retry loop is ours, kafkajs retries nothing: its own loop sends again only to the brokers that have not yet
 * answered, and so can lose the messages of a partition whose leader moves to one that has.
 */
const createCourier = (options: FactBusOptions, closing: AbortSignal) => {
  let connection: Connection | undefined

  const drop = (): void => {
    connection?.client.drop()
    connection = undefined
  }

  const attempt = async (chunk: readonly ProducerRecord[], delivery: Delivery): Promise<void> => {
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
    const pauseMs = Math.min(PAUSE_MAX_MS, PAUSE_MIN_MS * 2 ** tries) * (0.5 + Math.random() / 2)
    const late = performance.now() + pauseMs > delivery.deadline
    if (late || closing.aborted) throw new Unavailable('fact bus', delivery.effect, error)
    await delay(pauseMs, undefined, { signal: closing }).catch(() => undefined)
  }

  /** A topic may take less than the broker: then halves are tried, down to the one message that is too large. */
  const split = async (chunk: readonly ProducerRecord[], delivery: Delivery, error: unknown): Promise<void> => {
    const [first, ...others] = chunk
    if (first !== undefined && others.length === 0) throw new FactTooLarge(first.fact, error)
    const middle = Math.ceil(chunk.length / 2)
    await deliver(chunk.slice(0, middle), delivery)
    await deliver(chunk.slice(middle), delivery)
  }

  const deliver = async (chunk: readonly ProducerRecord[], delivery: Delivery): Promise<void> => {
    for (let tries = 0; ; tries++) {
      try {
        return await attempt(chunk, delivery)
      } catch (error) {
        if (isTooLarge(error)) return split(chunk, delivery, error)
        drop()
        const refusal = refusalOf(error, options)
        if (refusal !== undefined) throw new FactBusRefused(refusal, error)
        await pauseOrGiveUp(tries, delivery, error)
      }
    }
  }

  const deliverAll = async (chunks: readonly ProducerRecord[][]): Promise<void> => {
    const deadline = performance.now() + (options.publishDeadlineMs ?? PUBLISH_DEADLINE_MS)
    const delivery: Delivery = { effect: 'none', deadline }
    for (const chunk of chunks) await deliver(chunk, delivery)
  }
  return { deliverAll, drop }
}

/**
 * Publishes facts to Kafka, at least once and in order per key, with the acknowledgement of all replicas.
 *
 * One request is under way at a time, over all calls: the next one leaves only when the one before is acknowledged. Two
 * in flight could be stored as "second, first" when the first is lost and sent again. Calls that wait behind one that
 * fails therefore fail too (effect `none`): they would overtake the messages that their caller is about to send again.
 *
 * Connects on first use. Errors: Unavailable when the broker does not answer; FactTooLarge; FactBusRefused when
 * credentials or permissions are wrong; TopicMismatch from ensureTopics.
 */
export const openFactBus = (options: FactBusOptions): SubscriberBus => {
  const closing = new AbortController()
  const { deliverAll, drop } = createCourier(options, closing.signal)
  let last: Promise<void> = Promise.resolve()

  const inTurn = async (before: Promise<void>, chunks: readonly ProducerRecord[][]): Promise<void> => {
    await before.catch((cause: unknown) => {
      throw new Unavailable('fact bus', 'none', cause)
    })
    try {
      await deliverAll(chunks)
    } catch (error) {
      // Whoever waits already has `before` and fails with it; whoever comes from now on begins afresh.
      last = Promise.resolve()
      throw error
    }
  }

  const refuseWhenClosed = (): void => {
    if (closing.signal.aborted) throw new Unavailable('fact bus', 'none', new Error('It was closed.'))
  }

  return {
    async ensureTopics(topics) {
      refuseWhenClosed()
      await ensureTopics(options, topics)
    },
    async deleteTopics(topics) {
      refuseWhenClosed()
      await deleteTopics(options, topics)
    },
    async grantReading(principal, rights) {
      refuseWhenClosed()
      return grantReading(options, principal, rights)
    },
    async revokeReading(rights) {
      refuseWhenClosed()
      await revokeReading(options, rights)
    },
    async publish(messages) {
      refuseWhenClosed()
      const turn = inTurn(last, chunked(messages))
      last = turn
      await turn
    },
    async close() {
      closing.abort()
      const grace = new AbortController()
      const patience = delay(CLOSE_GRACE_MS, undefined, { signal: grace.signal }).catch(() => undefined)
      await Promise.race([last.catch(() => undefined), patience])
      grace.abort()
      drop()
    },
  }
}
