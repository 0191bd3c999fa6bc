import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { type Admin, type EachBatchPayload, Kafka as KafkaClient, logLevel } from 'kafkajs'
import type { Kafka } from '../../scripts/kafka/broker.ts'
import { closers } from './closers.ts'
import { eventually } from './eventually.ts'
import { checkKafkaMessage } from './asyncapiCheck.ts'
import { checkMessage } from './factSchemaCheck.ts'
import { removeFolder } from './folders.ts'
import { startBroker } from './preparedBroker.ts'
import { findWorkingProgram, whyNoBroker } from './programs.ts'
import { type Authority, newAuthority } from './selfSigned.ts'

export type KafkaForTests = {
  readonly brokers: readonly string[]
  /** Only of a real broker that the tests started. */
  readonly sasl?: Kafka['sasl']
  /** The certificate of the authority of its listener that uses TLS. */
  readonly authority?: string
  /** The authority of the certificates that its clients may show. */
  readonly clients?: Authority
}

/** `given`: KAFKA_BROKERS · `real`: started by the tests · `mock`: kcat's, which cannot create topics · `none`. */
export type KafkaKind = 'given' | 'real' | 'mock' | 'none'

const MOCK_START_MS = 120_000

/**
 * Why the tests cannot start a broker here; undefined if they can. The runner has asked already, once for all its workers. The
 * value is determined before tests are defined, so that a file defines only tests that can run here: a skipped test fails the
 * run.
 */
const noBroker = process.env.TEST_NO_BROKER ?? (await whyNoBroker())

const kindHere = (): KafkaKind => {
  if ((process.env.KAFKA_BROKERS ?? '') !== '') return 'given'
  if (noBroker === undefined) return 'real'
  return findWorkingProgram('kcat', ['-V']) === undefined ? 'none' : 'mock'
}

export const kafkaKind: KafkaKind = kindHere()

/**
 * Brokers that start from now on use the archive of classes that the runner makes (test/run/classArchive.ts), once it is
 * there: with a path of no file the JVM would start without its own archive too.
 */
export const useClassArchive = (): void => {
  const { TEST_CLASS_ARCHIVE: archive, JDK_JAVA_OPTIONS: options = '' } = process.env
  if (archive === undefined || options.includes(archive) || !existsSync(archive)) return
  process.env.JDK_JAVA_OPTIONS = `${options} -XX:SharedArchiveFile=${archive}`
}

/** A suite with its own broker, which it may stop, limit and disconnect. */
export const describeWithOwnBroker = (title: string, suite: (this: Mocha.Suite) => void): void => {
  describe(title, function () {
    beforeEach(useClassArchive)
    if (noBroker === undefined) return suite.call(this)
    it(`is not run, because its broker cannot be started: ${noBroker}`, () => {
      expect(noBroker).not.to.equal('')
    })
  })
}

let started: Promise<KafkaForTests | undefined> | undefined
const stops: (() => Promise<void>)[] = []

const startReal = async (): Promise<KafkaForTests> => {
  const dataDir = await mkdtemp(join(tmpdir(), 'ledger-kafka-'))
  stops.push(() => removeFolder(dataDir))
  useClassArchive()
  const authority = newAuthority('The authority of Kafka')
  const clients = newAuthority('The authority of Kafka’s clients')
  const certified = { ...authority.issue(['localhost', '127.0.0.1']), clientAuthority: clients.cert }
  const kafka = await startBroker({ dataDir, sasl: { certified }, log: line => process.stdout.write(`${line}\n`) })
  stops.push(() => kafka.stop())
  return { ...kafka, authority: authority.cert, clients }
}

const addressOf = (mock: ChildProcess): Promise<string> => {
  let output = ''
  mock.stderr?.on('data', (chunk: Buffer) => {
    output += chunk.toString()
  })
  return eventually(() => /127\.0\.0\.1:\d+/.exec(output)?.[0], MOCK_START_MS)
}

const startMock = async (): Promise<KafkaForTests> => {
  const options = ['-b', 'x', '-X', 'test.mock.num.brokers=1', '-d', 'mock', '-C', '-t', 'keep']
  const mock = spawn('kcat', options, { stdio: ['ignore', 'ignore', 'pipe'] })
  const kill = (): void => void mock.kill('SIGKILL')
  process.once('exit', kill)
  stops.push(async () => kill())
  return { brokers: [await addressOf(mock)] }
}

const start = async (): Promise<KafkaForTests | undefined> => {
  if (kafkaKind === 'given') return { brokers: (process.env.KAFKA_BROKERS ?? '').split(',') }
  if (kafkaKind === 'real') return startReal()
  const untested = kafkaKind === 'mock' ? 'topic settings, restarts, SASL and ACLs' : 'everything that needs a broker'
  process.stdout.write(`Kafka: ${noBroker} Not run: ${untested}.\n`)
  return kafkaKind === 'mock' ? startMock() : undefined
}

/** The broker of the process, started on first use; undefined if none is available. */
export const kafkaForTests = (): Promise<KafkaForTests | undefined> => {
  started ??= start()
  return started
}

closers.push(async () => {
  await started?.catch(() => undefined)
  for (const stop of stops.splice(0).toReversed()) await stop()
  started = undefined
})

export type TopicMessage = {
  readonly partition: number
  readonly offset: bigint
  readonly key: string
  readonly headers: Readonly<Record<string, string>>
  readonly value: string
}

const messagesOf = ({ batch }: EachBatchPayload): TopicMessage[] =>
  batch.messages.map(({ offset, key, headers, value }) => ({
    partition: batch.partition,
    offset: BigInt(offset),
    key: key?.toString() ?? '',
    headers: Object.fromEntries(Object.entries(headers ?? {}).map(([name, header]) => [name, String(header)])),
    value: value?.toString() ?? '',
  }))

const OFFSET_TRIES_MAX = 50
const OFFSET_RETRY_MS = 200

/** A restarted broker leads its partitions a moment later; kafkajs leaves that wait to its caller. */
const offsetsOf = async (admin: Admin, topic: string) => {
  for (let tries = 1; ; tries++) {
    try {
      return await admin.fetchTopicOffsets(topic)
    } catch (error) {
      const isRetriable = error instanceof Error && 'retriable' in error && error.retriable === true
      if (!isRetriable || tries === OFFSET_TRIES_MAX) throw error
      await delay(OFFSET_RETRY_MS)
    }
  }
}

/** The end offset of each partition that is not empty. */
const endsOf = async (client: KafkaClient, topic: string): Promise<Map<number, bigint>> => {
  const admin = client.admin()
  await admin.connect()
  try {
    const offsets = await offsetsOf(admin, topic)
    const filled = offsets.filter(({ low, high }) => low !== high)
    return new Map(filled.map(({ partition, high }) => [partition, BigInt(high)]))
  } finally {
    await admin.disconnect()
  }
}

/** The service's own topics. Messages of tests in other topics are not facts, and dead letters wrap facts. */
const isOwn = (topic: string): boolean => topic.startsWith('ledger.')
const isOfFacts = (topic: string): boolean => isOwn(topic) && !topic.endsWith('.dlq')

/**
 * Every message of a topic up to its present end, in order of offset within each partition. A fact that violates its
 * schema is an error.
 */
export const readTopic = async (brokers: readonly string[], topic: string): Promise<TopicMessage[]> => {
  const messages = await consumed(brokers, topic)
  if (isOfFacts(topic)) for (const message of messages) checkMessage(message)
  if (isOwn(topic)) for (const message of messages) checkKafkaMessage(topic, message)
  return messages
}

const consumed = async (brokers: readonly string[], topic: string): Promise<TopicMessage[]> => {
  const client = new KafkaClient({ brokers: [...brokers], clientId: 'tests', logLevel: logLevel.NOTHING })
  const missing = await endsOf(client, topic)
  if (missing.size === 0) return []
  const read: TopicMessage[] = []
  const consumer = client.consumer({
    groupId: `tests-${randomUUID()}`,
    maxWaitTimeInMs: 50,
    retry: { initialRetryTime: 50 },
  })
  const { promise: complete, resolve, reject } = Promise.withResolvers<void>()
  consumer.on(consumer.events.CRASH, ({ payload }) => void (payload.restart || reject(payload.error)))
  try {
    await consumer.connect()
    await consumer.subscribe({ topic, fromBeginning: true })
    await consumer.run({
      eachBatch: async payload => {
        read.push(...messagesOf(payload))
        const { partition } = payload.batch
        if (BigInt(payload.batch.lastOffset()) + 1n >= (missing.get(partition) ?? 0n)) missing.delete(partition)
        if (missing.size === 0) resolve()
      },
    })
    await complete
  } finally {
    await consumer.disconnect()
  }
  return read
}
