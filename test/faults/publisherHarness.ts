import { execFile, spawn } from 'node:child_process'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { publishedBy } from '../../projections/facts/projection.ts'
import type { Kafka } from '../../scripts/kafka/broker.ts'
import type { CloudEvent } from '../../streams/facts.ts'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { openDatabase } from '../../src/adapters/postgres/database.ts'
import { positionOf } from '../../src/feeds/checkpoints.ts'
import { decode } from '../../src/feeds/decode.ts'
import type { Database, EventStore, StoredEvent } from '../../src/ports.ts'
import { type Client, clientOf } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { readTopic, type TopicMessage } from '../support/kafka.ts'
import { SHORT_LIVED } from '../support/nodeFlags.ts'
import { openTcpProxy, type TcpProxy } from '../support/tcpProxy.ts'
import { type ServiceProcess, startProcess, temporaryDirectory } from '../support/service.ts'
import { startBroker } from '../support/preparedBroker.ts'
import { removeFolder } from '../support/folders.ts'

/**
 * The harness of publisher.test.ts: a broker, a service without the role publisher, and publishers in processes of their own
 * that can be killed.
 */

const CATEGORIES = ['order', 'invoice', 'payment', 'operation'] as const
export const TOPICS: readonly string[] = CATEGORIES.map(category => `ledger.${category}.v1`)

const AUDIENCE = 'payment-ledger'
const PAGE = 100
const DRAIN_MAX_MS = 300_000

export type Message = TopicMessage & { readonly topic: string }
export type Committed = { readonly stored: StoredEvent; readonly fact: CloudEvent }

export type Publisher = {
  readonly pid: number
  /** The state of its feed at /readyz. */
  readonly feed: () => Promise<string>
  /** Sends the signal and resolves when the process has ended. */
  readonly end: (signal: NodeJS.Signals) => Promise<void>
}

export type PublisherHarness = {
  readonly brokers: () => readonly string[]
  readonly store: EventStore
  readonly database: Database
  /** The proxy between the publishers and the broker. */
  readonly proxy: TcpProxy
  readonly client: (tenant: string) => Promise<Client>
  /** Resolves when the process is ready. */
  readonly startPublisher: () => Promise<Publisher>
  /** Kills every publisher that still runs. */
  readonly killPublishers: () => Promise<void>
  readonly cutBroker: () => Promise<void>
  readonly reconnectBroker: () => Promise<void>
  /** Resolves when the publisher and GET /events have reached the end of the log. */
  readonly drained: () => Promise<void>
  /** The facts to publish, in the order of the log. */
  readonly committed: () => Promise<Committed[]>
  /** The facts at GET /events, page by page. */
  readonly served: (tenant: string) => Promise<CloudEvent[]>
  /** All messages of the topics with duplicates, in the order of offsets within each partition. */
  readonly published: () => Promise<Message[]>
  readonly close: () => Promise<void>
}

const main = new URL('../../src/main.ts', import.meta.url).pathname
const compose = new URL('../../src/compose/service.ts', import.meta.url).href

/** A process that ends by itself writes the compile cache, which shortens the starts; a killed one does not. */
const fillCompileCache = async (folder: string): Promise<{ readonly NODE_COMPILE_CACHE?: string }> => {
  if (process.env['NODE_COMPILE_CACHE'] !== undefined) return {}
  const cache = { NODE_COMPILE_CACHE: join(folder, 'compiled') }
  const program = `await import('${compose}'); process.exit(0)`
  const flags = ['--disable-warning=ExperimentalWarning', '--input-type=module']
  await promisify(execFile)(process.execPath, [...flags, '--eval', program], { env: { ...process.env, ...cache } })
  return cache
}

const spawnPublisher = async (dataDir: string, env: Readonly<Record<string, string>>): Promise<Publisher> => {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', ...SHORT_LIVED, main], {
    env: { ...process.env, NODE_ENV: 'test', PORT: '0', LEDGER_DATA_DIR: dataDir, LEDGER_ROLES: 'publisher', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const kill = (): void => void child.kill('SIGKILL')
  process.once('exit', kill)
  const ended = new Promise<void>(resolve => child.once('close', () => resolve()))
  let output = ''
  const ready = Promise.withResolvers<void>()
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString()
      if (/^ready$/m.test(output)) ready.resolve()
    })
  void ended.then(() => {
    process.removeListener('exit', kill)
    ready.reject(new Error(`The publisher ended before it was ready:\n${output}`))
  })
  await ready.promise
  const api = /^API +(\S+)$/m.exec(output)?.[1] ?? ''
  return {
    pid: child.pid ?? 0,
    feed: async () => (await clientOf(api).get('/readyz')).body.checks.publisher,
    end: async signal => {
      child.kill(signal)
      await ended
    },
  }
}

const committedIn = async (store: EventStore): Promise<Committed[]> => {
  const actual: Committed[] = []
  const enough = new AbortController()
  for await (const item of store.subscribe({ after: 'start', categories: CATEGORIES, signal: enough.signal })) {
    if (item.kind === 'caught_up') break
    if (item.kind !== 'event') continue
    const { category, recorded } = decode(item.event)
    const fact = publishedBy(category, recorded)
    if (fact !== undefined) actual.push({ stored: item.event, fact })
  }
  enough.abort()
  return actual
}

const servedTo = async (client: Client): Promise<CloudEvent[]> => {
  const items: CloudEvent[] = []
  for (let cursor = ''; ; ) {
    const { body } = await client.get(`/events?limit=${PAGE}${cursor}`)
    items.push(...body.items)
    if (body.page.has_more !== true) return items
    cursor = `&cursor=${encodeURIComponent(body.page.next_cursor)}`
  }
}

const messagesIn = async (brokers: readonly string[], topic: string): Promise<Message[]> =>
  (await readTopic(brokers, topic)).map(message => ({ ...message, topic }))

/** Reading the whole log is expensive, so it is read again only when the feeds have reached its previous end. */
const drainedTo = async (store: EventStore, { sql }: Database): Promise<void> => {
  const endOfLog = async (): Promise<bigint> => (await committedIn(store)).at(-1)?.stored.position ?? 0n
  for (let end = await endOfLog(), before = -1n; end !== before; before = end, end = await endOfLog())
    await eventually(async () => {
      const reached = await Promise.all(['publisher', 'facts_v1'].map(feed => positionOf(sql, feed)))
      return reached.every(position => position >= end)
    }, DRAIN_MAX_MS)
}

const environmentOf = ({ addresses }: ServiceProcess, brokers: readonly string[]) => ({
  EVENTSTORE_URL: addresses.event_store,
  DATABASE_URL: addresses.postgres,
  OIDC_ISSUER: addresses.issuer,
  OIDC_AUDIENCE: AUDIENCE,
  KAFKA_BROKERS: brokers.join(','),
})

const publishers = (folder: string, env: Readonly<Record<string, string>>) => {
  const running = new Set<Publisher>()
  let count = 0
  const start = async (): Promise<Publisher> => {
    const publisher = await spawnPublisher(join(folder, `publisher-${++count}`), env)
    running.add(publisher)
    const end: Publisher['end'] = async signal => {
      await publisher.end(signal)
      running.delete(publisher)
    }
    return { ...publisher, end }
  }
  const killAll = async (): Promise<void> => {
    await Promise.all([...running].map(publisher => publisher.end('SIGKILL')))
    running.clear()
  }
  return { start, killAll }
}

/** A broker behind a proxy that can be killed and started again, at the same address and with the same data. */
const brokerIn = async (dataDir: string) => {
  const proxy = await openTcpProxy()
  const start = async (port: number): Promise<Kafka> => {
    const started = await startBroker({ dataDir, port, advertisedPort: proxy.port })
    const [properties = ''] = /^listeners=\S+$/m.exec(await readFile(join(dataDir, 'server.properties'), 'utf8')) ?? []
    proxy.lead(Number(/PLAINTEXT:\/\/127\.0\.0\.1:(\d+)/.exec(properties)?.[1]))
    return started
  }
  let kafka = await start(0).catch(async (error: unknown) => {
    await proxy.close()
    throw error
  })
  return {
    brokers: () => kafka.brokers,
    proxy,
    cut: () => kafka.kill(),
    close: () => kafka.kill().then(proxy.close),
    restore: async () => {
      kafka = await start(0)
    },
  }
}

/** Starts both at the same time. If one fails, the other is ended. */
const startBoth = async (folder: string) => {
  const folders = { api: join(folder, 'api'), kafka: join(folder, 'kafka') }
  await Promise.all(Object.values(folders).map(path => mkdir(path)))
  const [broker, api] = await Promise.allSettled([
    brokerIn(folders.kafka),
    startProcess(folders.api, { LEDGER_ROLES: 'api,projector,worker', KAFKA_BROKERS: '' }),
  ])
  if (broker.status === 'fulfilled' && api.status === 'fulfilled') return { broker: broker.value, api: api.value }
  if (broker.status === 'fulfilled') await broker.value.close()
  if (api.status === 'fulfilled') await api.value.end('SIGTERM')
  throw [broker, api].find(outcome => outcome.status === 'rejected')?.reason
}

export const openPublisherHarness = async (): Promise<PublisherHarness> => {
  const folder = await temporaryDirectory()
  const [{ broker, api }, cache] = await Promise.all([startBoth(folder), fillCompileCache(folder)])
  const store = openEventStore({ connectionString: api.addresses.event_store })
  const database = openDatabase({ connectionString: api.addresses.postgres })
  const { start, killAll } = publishers(folder, { ...environmentOf(api, broker.brokers()), ...cache })
  const client: PublisherHarness['client'] = async tenant => clientOf(api.api, await api.token({ tenant }))
  return {
    brokers: broker.brokers,
    store,
    database,
    proxy: broker.proxy,
    client,
    startPublisher: start,
    killPublishers: killAll,
    cutBroker: broker.cut,
    reconnectBroker: broker.restore,
    drained: () => drainedTo(store, database),
    committed: () => committedIn(store),
    served: async tenant => servedTo(await client(tenant)),
    published: async () => (await Promise.all(TOPICS.map(topic => messagesIn(broker.brokers(), topic)))).flat(),
    close: async () => {
      await killAll()
      await Promise.all([store.close(), database.close()])
      await Promise.all([api.end('SIGTERM'), broker.close()])
      await removeFolder(folder)
    },
  }
}
