import { z } from 'zod'
import { openClient, refusalOf } from '../../../src/adapters/kafka/client.ts'
import type { Config } from '../../../src/settings/config.ts'
import { fetchJwksFrom } from '../../../src/identity/fetchJwks.ts'
import type { Database, EventStore } from '../../../src/ports.ts'
import { withoutPassword } from '../connections.ts'
import { type Check, finding, notUsed, ok, orNotChecked, reasonOf, answered } from './finding.ts'
import { checkTopics } from './topics.ts'

/** Checks whether each dependency responds, by the same clients that the service uses. */

type Attempt<T> = { readonly value: T; readonly took: string } | { readonly failed: string }

const attempt = async <T>(work: () => Promise<T>, explain = reasonOf): Promise<Attempt<T>> => {
  const startedAtMs = performance.now()
  try {
    const value = await answered(work())
    return { value, took: `${Math.round(performance.now() - startedAtMs)} ms` }
  } catch (error) {
    return { failed: explain(error) }
  }
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
  const detail = `${withoutPassword(address)} does not answer: ${tried.failed}`
  return {
    check: finding('event store', detail, 'Start it, or correct EVENTSTORE_URL; until then nothing can be written.'),
  }
}

export const checkPostgres = async (address: string, database: Database, isEmbedded: boolean): Promise<Check> => {
  const tried = await attempt(() => database.sql('select 1 as one'))
  if ('value' in tried) return ok('Postgres', `${withoutPassword(address)}, ${tried.took}`)
  return finding(
    'Postgres',
    `${withoutPassword(address)} does not answer: ${tried.failed}`,
    isEmbedded
      ? 'It is embedded in the service, which restarts it. If this does not help, restart the service. Until then lists and commands fail.'
      : 'Start it, or correct DATABASE_URL. Until then lists fail.',
  )
}

const silent = { warn: () => undefined, info: () => undefined, debug: () => undefined }

/** The checks of the broker and, if it responds, of the topics. */
export const checkKafka = async (address: string | null, { kafka }: Config): Promise<readonly Check[]> => {
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
    const tried = await attempt(describe, error => refusalOf(error, options) ?? reasonOf(error))
    if ('value' in tried) {
      const broker = ok('Kafka', `${address}, brokers: ${tried.value}, ${tried.took}`)
      return [broker, await orNotChecked('topics', () => checkTopics(admin))]
    }
    return [
      finding(
        'Kafka',
        `${address} does not answer: ${tried.failed}`,
        'Start it, or correct KAFKA_BROKERS and KAFKA_SASL_*; the API keeps working, and the publisher catches up later.',
      ),
    ]
  } finally {
    client.drop()
  }
}

const keysSchema = z.object({ keys: z.array(z.object({ kid: z.string() })).min(1) })

export const checkIssuer = async (issuer: string): Promise<Check> => {
  const tried = await attempt(async () => keysSchema.parse(await fetchJwksFrom(issuer)()).keys.length)
  if ('value' in tried) return ok('issuer', `${issuer}, keys: ${tried.value}, ${tried.took}`)
  return finding(
    'issuer',
    `The keys of ${issuer} cannot be fetched: ${tried.failed}`,
    'Start it, or correct OIDC_ISSUER; tokens signed with keys that are already known are accepted until then.',
  )
}

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
