import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { journals, READ_MODEL_TABLES as TABLES } from '../../projections/index.ts'
import { createCaller, PARTS_PER_INVOICE, untilFeedsReach, withClient } from './apiClient.ts'
import { type CpuMeter, openCpuMeter, processGroups, totalOf } from './processes.ts'
import { feedsOf } from './rebuild.ts'
import { openTables, runUntilCaughtUp } from './feedRuns.ts'
import type { GrowthData } from './growthData.ts'
import { type Harness, startStoresOn, type StoppableService, type StoreAddresses } from './harness.ts'
import { type NextPart, partsOf, pay, payAndCheck, type PaidSample } from './paymentSides.ts'

const CAUGHT_UP_MAX_MS = 3_600_000
const POLL_MS = 1_000
const QUIET_MAX_MS = 600_000
/** The share of a core below which all processes together are quiet. */
const QUIET_CORES = 0.05
const QUIET_MS = 3_000
const PAYING_MAX_SECONDS = 120
const PAYING_ATTEMPTS_MAX = 5

type LogSize = { readonly events: number; readonly bytes: number }

const eventsUrl = (databaseUrl: string): string => {
  const url = new URL(databaseUrl)
  url.pathname = '/eventstore'
  return url.href
}

const LOG_SIZE = `select count(*)::float8 as events, pg_total_relation_size('events')::float8 as bytes from events`
const TABLE_BYTES = 'select sum(pg_total_relation_size(name::regclass))::float8 as bytes from unnest($1::text[]) name'

const readModelBytes = (databaseUrl: string): Promise<number> =>
  withClient(databaseUrl, async client => {
    const { rows } = await client.query<{ bytes: number }>(TABLE_BYTES, [TABLES])
    return rows[0]?.bytes ?? Number.NaN
  })

/** Does at once what Postgres' autovacuum and its checkpoints would do in the background of the measurements. */
const settleTables = async (databaseUrl: string): Promise<LogSize> => {
  await withClient(databaseUrl, client => client.query('vacuum analyze'))
  return withClient(eventsUrl(databaseUrl), async client => {
    await client.query('vacuum analyze')
    await client.query('checkpoint')
    const { rows } = await client.query<LogSize>(LOG_SIZE)
    return rows[0] ?? { events: 0, bytes: 0 }
  })
}

/** Empties the read models, and fills them from the log; returns seconds. */
const rebuildReadModels = async (stores: StoreAddresses): Promise<number> => {
  const database = await openTables(stores)
  try {
    await database.sql(`truncate ${TABLES.join(', ')}`)
    await database.sql('delete from checkpoints where name = any($1::text[])', [TABLES])
    return await runUntilCaughtUp(stores, database, feedsOf(database))
  } finally {
    await database.close()
  }
}

/** Rebuilds `rounds` times, and leaves the data in a settled state. */
export const measureRebuilds = async ({ dataDir }: GrowthData, rounds: number, log: Harness['log']) => {
  const stores = await startStoresOn(dataDir, log)
  try {
    const seconds: number[] = []
    while (seconds.length < rounds) seconds.push(await rebuildReadModels(stores))
    const logSize = await settleTables(stores.databaseUrl)
    return { seconds, logSize, readModelBytes: await readModelBytes(stores.databaseUrl) }
  } finally {
    await stores.stop()
  }
}

const HEAD = 'select max(position)::text as head from events'

/** Waits until every feed has processed the present end of the log; only the facts are made of events of any kind. */
const untilCaughtUp = async ({ addresses: { postgres } }: StoppableService): Promise<void> => {
  const position = await withClient(eventsUrl(postgres), async client => {
    const { rows } = await client.query<{ head: string }>(HEAD)
    return BigInt(rows[0]?.head ?? 0)
  })
  const names = [journals.facts.name]
  await untilFeedsReach(postgres, { names, position, pollMs: POLL_MS, maxMs: CAUGHT_UP_MAX_MS })
}

/** Pays as a tenant of its own, so that the check finds these payments alone. */
const payOnce = async (
  service: StoppableService,
  meter: CpuMeter,
  { connections, count }: { readonly connections: number; readonly count: number },
): Promise<PaidSample> => {
  const payer = await createCaller(service, `growth-${randomUUID()}`)
  const next = partsOf(await payer.invoices(Math.ceil(count / PARTS_PER_INVOICE) + connections), connections, false)
  await payer.untilFeedsCaughtUp()
  let left = count
  const nextLeft: NextPart = connection => (left-- > 0 ? next(connection) : undefined)
  const side = pay(service.addresses, payer, { connections, next: nextLeft })
  return payAndCheck(payer, meter, side)(PAYING_MAX_SECONDS)
}

const isShed = (error: unknown): boolean => error instanceof Error && error.message.includes('"code":"overloaded"')

/** A round in which the service refused requests, because other programs had the processor, is repeated. */
const payPatiently = async (log: Harness['log'], paying: () => Promise<PaidSample>): Promise<PaidSample> => {
  for (let attempts = 1; ; attempts += 1)
    try {
      return await paying()
    } catch (error) {
      if (!isShed(error) || attempts === PAYING_ATTEMPTS_MAX) throw error
      log('the service was overloaded; the round is repeated')
      await sleep(QUIET_MS)
    }
}

/** The service on the data, when all feeds have caught up and nothing is left to do. */
export const openSide = async (service: StoppableService, log: Harness['log']) => {
  const groups = processGroups(service.addresses.pids, undefined)
  const meter = await openCpuMeter(groups, log)
  if (meter === undefined) throw new Error('This benchmark needs /proc.')
  await untilCaughtUp(service)
  await untilQuiet(meter)
  return {
    service,
    groups,
    meter,
    /** Makes so many payments at so many connections, and checks them. */
    pay: (connections: number, count: number): Promise<PaidSample> =>
      payPatiently(log, () => payOnce(service, meter, { connections, count })),
  }
}

export type GrowthSide = Awaited<ReturnType<typeof openSide>>

const untilQuiet = async (meter: CpuMeter): Promise<void> => {
  const deadlineMs = performance.now() + QUIET_MAX_MS
  while (performance.now() < deadlineMs) {
    const before = totalOf(await meter())
    await sleep(QUIET_MS)
    if ((totalOf(await meter()) - before) / QUIET_MS < QUIET_CORES) return
  }
  throw new Error(`The service was not idle within ${QUIET_MAX_MS} ms.`)
}
