import { readFile } from 'node:fs/promises'
import type { Admin } from 'kafkajs'
import { z } from 'zod'
import { MANIFEST_TOPICS, TOPIC_PARTITIONS } from '../../../projections/factTopics.ts'
import { openEventStore } from '../../../src/adapters/eventstoredb/eventStore.ts'
import { serverVersionOf } from '../../../src/adapters/eventstoredb/serverVersion.ts'
import { openClient, refusalOf } from '../../../src/adapters/kafka/client.ts'
import {
  type ConnectionFailure,
  connectionFailureOf,
  PART_SETTINGS,
  type PartSettings,
  reasonOf,
} from '../../../src/lib/connectionFailures.ts'
import { placeOfUrl, probe, urlEncryption } from '../../../src/lib/probe.ts'
import type { Config } from '../../../src/settings/config.ts'
import { fetchJwksFrom } from '../../../src/identity/fetchJwks.ts'
import type { Database, EventStore } from '../../../src/ports.ts'
import { withoutPassword } from '../connections.ts'
import { type Check, finding, notUsed, ok, orNotChecked, answered } from './finding.ts'
import { checkPublishedFacts, type PublishedFacts } from './publishedFacts.ts'

type Attempt<T> = { readonly value: T; readonly took: string } | { readonly failed: string; readonly error: unknown }

const attempt = async <T>(work: () => Promise<T>): Promise<Attempt<T>> => {
  const startedAtMs = performance.now()
  try {
    const value = await answered(work())
    return { value, took: `${Math.round(performance.now() - startedAtMs)} ms` }
  } catch (error) {
    return { failed: reasonOf(error), error }
  }
}

type Part = { readonly check: string; readonly address: string; readonly settings: PartSettings }

/** What a server does that cannot be used: it may well answer. */
const PREDICATES: Readonly<Record<ConnectionFailure['kind'], string>> = {
  certificate: 'cannot be used',
  login: 'cannot be used',
  unreachable: 'cannot be reached',
  other: 'does not answer',
}

/** `until`: what follows from it. `own`: another remedy than that of the failure. */
const unusable = ({ check, address, settings }: Part, error: unknown, until: string, own?: string): Check => {
  const { kind, cause, remedy } = connectionFailureOf(error, settings)
  return finding(check, `${address} ${PREDICATES[kind]}: ${cause}`, `${own ?? remedy} ${until}`)
}

const get = async (url: string): Promise<{ status: number; body: unknown }> => {
  const response = await fetch(url, { redirect: 'error' })
  return { status: response.status, body: await response.json().catch(() => undefined) }
}

const liveSchema = z.object({ status: z.literal('ok') })
const readySchema = z.object({ status: z.string(), checks: z.record(z.string(), z.string()) })
const HEALTHY: ReadonlySet<string> = new Set(['ok', 'waiting', 'catching_up', 'live'])

const failingChecks = (body: unknown): string => {
  const parsed = readySchema.safeParse(body)
  if (!parsed.success) return 'it does not say why'
  const named = Object.entries(parsed.data.checks).filter(([, state]) => !HEALTHY.has(state))
  return named.map(([name, state]) => `${name}: ${state}`).join('; ')
}

export const checkApi = async (api: string): Promise<Check> => {
  const live = await attempt(() => get(`${api}/livez`))
  const remedy = 'Check its log, then restart it with npm start.'
  if ('failed' in live) return finding('API', `${api} does not answer: ${live.failed}`, remedy)
  if (!liveSchema.safeParse(live.value.body).success)
    return finding(
      'API',
      `What answers at ${api} is not this service.`,
      'Set PORT or LEDGER_DATA_DIR to those of the service.',
    )
  const ready = await attempt(() => get(`${api}/readyz`))
  if ('failed' in ready)
    return finding('API', `${api} is running but does not say whether it is ready: ${ready.failed}`, remedy)
  if (ready.value.status === 200) return ok('API', `${api} is ready, ${ready.took}`)
  return finding(
    'API',
    `${api} is not ready: ${failingChecks(ready.value.body)}`,
    'Repair the dependency that it names; the service then recovers by itself.',
  )
}

/** The check, and the position of the newest event if the store responds. */
export const checkStore = async (
  address: string,
  store: EventStore,
): Promise<{ check: Check } | { check: Check; head: bigint }> => {
  const tried = await attempt(() => store.head())
  if ('value' in tried)
    return {
      check: ok('event store', `${withoutPassword(address)} at position ${tried.value}, ${tried.took}`),
      head: tried.value,
    }
  const part = { check: 'event store', address: withoutPassword(address), settings: PART_SETTINGS['event store'] }
  return { check: unusable(part, tried.error, 'Until then nothing can be written.') }
}

const EMBEDDED_POSTGRES =
  'It is embedded in the service, which restarts it. If this does not help, restart the service.'

export const checkPostgres = async (address: string, database: Database, isEmbedded: boolean): Promise<Check> => {
  const tried = await attempt(() => database.sql('select 1 as one'))
  if ('value' in tried) return ok('Postgres', `${withoutPassword(address)}, ${tried.took}`)
  const part = { check: 'Postgres', address: withoutPassword(address), settings: PART_SETTINGS.database }
  return isEmbedded
    ? unusable(part, tried.error, 'Until then lists and commands fail.', EMBEDDED_POSTGRES)
    : unusable(part, tried.error, 'Until then lists fail.')
}

const SUBSCRIPTIONS = 'ledger.subscription.'

/** `topics`: the number of partitions by the name of the topic. */
export const topicsCheck = (topics: ReadonlyMap<string, number>): Check => {
  const missing = MANIFEST_TOPICS.filter(topic => !topics.has(topic))
  const other = MANIFEST_TOPICS.filter(topic => (topics.get(topic) ?? TOPIC_PARTITIONS) !== TOPIC_PARTITIONS)
  const subscriptions = [...topics.keys()].filter(topic => topic.startsWith(SUBSCRIPTIONS)).length
  if (missing.length === 0 && other.length === 0)
    return ok('topics', `${MANIFEST_TOPICS.length} of facts, ${subscriptions} of subscriptions`)
  const words = [
    ...(missing.length > 0 ? [`There is no topic ${missing.join(', ')}.`] : []),
    ...other.map(topic => `${topic} has ${topics.get(topic)} partitions instead of ${TOPIC_PARTITIONS}.`),
  ]
  return finding(
    'topics',
    words.join(' '),
    missing.length > 0
      ? 'The publisher creates them: run a process with that role and the right to create topics.'
      : 'Consumers rely on the order within a key: restore the number, or start with empty topics.',
  )
}

const checkTopics = async (admin: Admin): Promise<Check> => {
  const { topics } = await admin.fetchTopicMetadata()
  return topicsCheck(new Map(topics.map(({ name, partitions }) => [name, partitions.length])))
}

const silent = { warn: () => undefined, info: () => undefined, debug: () => undefined }

/** None where the address of the event store is not known, of which there is a finding. */
const checkFacts = async (
  eventStore: string | null,
  compared: Omit<PublishedFacts, 'store'>,
): Promise<readonly Check[]> => {
  if (eventStore === null) return []
  const store = openEventStore({ connectionString: eventStore })
  try {
    return [await checkPublishedFacts({ ...compared, store })]
  } finally {
    await store.close()
  }
}

type Addresses = { readonly kafka: string | null; readonly event_store: string | null }

/** The checks of the broker and, if it responds, of the topics and the facts in them. */
export const checkKafka = async (
  { kafka: address, event_store }: Addresses,
  { kafka }: Config,
): Promise<readonly Check[]> => {
  if (address === null) return [notUsed('Kafka', 'not configured; the same facts are at GET /events')]
  const options = {
    brokers: address.split(','),
    ssl: kafka?.ssl,
    sasl: kafka?.sasl,
    clientId: 'doctor',
    logger: silent,
  }
  const client = openClient(options)
  const admin = client.admin()
  const describe = async (): Promise<number> => {
    await admin.connect()
    return (await admin.describeCluster()).brokers.length
  }
  try {
    const tried = await attempt(describe)
    if ('value' in tried) {
      const broker = ok('Kafka', `${address}, brokers: ${tried.value}, ${tried.took}`)
      const topics = await orNotChecked('topics', () => checkTopics(admin))
      return [broker, topics, ...(await checkFacts(event_store, { client, admin, options }))]
    }
    const refusal = refusalOf(tried.error, options)
    const error = refusal === undefined ? tried.error : new Error(refusal)
    const part = { check: 'Kafka', address, settings: PART_SETTINGS['fact bus'] }
    return [unusable(part, error, 'The API keeps working, and the publisher catches up later.')]
  } finally {
    client.drop()
  }
}

const keysSchema = z.object({ keys: z.array(z.object({ kid: z.string() })).min(1) })

export const checkIssuer = async (issuer: string): Promise<Check> => {
  const tried = await attempt(async () => keysSchema.parse(await fetchJwksFrom(issuer)()).keys.length)
  if ('value' in tried) return ok('issuer', `${issuer}, keys: ${tried.value}, ${tried.took}`)
  return unusable(
    { check: 'issuer', address: issuer, settings: PART_SETTINGS.issuer },
    tried.error,
    'Tokens signed with keys that are already known are accepted until then.',
  )
}

const COLLECTOR_MAX_MS = 5_000

/** Connects to each collector of OpenTelemetry, whose exporter keeps failures to itself. */
export const checkCollectors = ({ telemetry }: Config): Promise<readonly Check[]> =>
  Promise.all(
    telemetry.map(async ({ setting, url, ca }) => {
      const [place] = placeOfUrl(url)
      const encryption = urlEncryption(url, ca)
      const error = place && (await probe(place, { encryption, timeoutMs: COLLECTOR_MAX_MS }))
      if (error === undefined) return ok('telemetry', `${url} accepts connections`)
      const settings = { ...PART_SETTINGS.telemetry, address: setting }
      return unusable({ check: 'telemetry', address: url, settings }, error, 'The service itself keeps working.')
    }),
  )

export const checkMetrics = async (metrics: string | null): Promise<Check> => {
  if (metrics === null) return notUsed('metrics', 'the address is not known here; METRICS_PORT sets it')
  const tried = await attempt(async () => (await fetch(metrics)).status)
  if ('value' in tried && tried.value === 200) return ok('metrics', `${metrics}, ${tried.took}`)
  const why = 'failed' in tried ? tried.failed : `status ${tried.value}`
  return finding(
    'metrics',
    `${metrics} does not answer: ${why}`,
    'Correct METRICS_PORT; the service itself keeps working.',
  )
}

export type Versions = {
  readonly build: string
  readonly postgres: string | null
  readonly event_store: string | null
}

const POSTGRES_MAJOR_MIN = 14
const PACKAGE = new URL('../../../package.json', import.meta.url)

const orNull = async (work: Promise<string> | undefined): Promise<string | null> => {
  if (work === undefined) return null
  return await answered(work).catch((error: unknown) => `unknown (${reasonOf(error)})`)
}

const postgresVersion = async ({ sql }: Database): Promise<string> =>
  (await sql<{ server_version: string }>('show server_version'))[0]?.server_version ?? ''

/** Reads the versions of the servers that answer; one that does not is null. */
export const readVersions = async (database: Database | undefined, store: string | undefined): Promise<Versions> => {
  const { version: build } = JSON.parse(await readFile(PACKAGE, 'utf8')) as { version: string }
  const [postgres, event_store] = await Promise.all([
    orNull(database && postgresVersion(database)),
    orNull(store === undefined ? undefined : serverVersionOf(store)),
  ])
  return { build, postgres, event_store }
}

export const checkVersions = ({ build, postgres, event_store }: Versions): Check => {
  const detail = `build ${build}, Postgres ${postgres ?? 'not reached'}, event store ${event_store ?? 'not reached'}`
  if (postgres === null || !/^\d/.test(postgres) || Number.parseInt(postgres) >= POSTGRES_MAJOR_MIN)
    return ok('versions', detail)
  return finding(
    'versions',
    `Postgres ${postgres} is too old.`,
    `Use Postgres ${POSTGRES_MAJOR_MIN} or newer; the tables need its features.`,
  )
}
