import { workForAll } from '../../fairness/currentAccount.ts'
import type { Database, Sql, World } from '../../ports.ts'

/**
 * The requests of each API version by route and client, which operators read before they retire it. Counted in memory,
 * and added to Postgres every few seconds: a killed process loses the last ones, a repeated write may count twice.
 */

const FLUSH_MS = 5_000
/** New series beyond this number, per process and day, are counted together: clients cannot make rows without end. */
const SERIES_PER_DAY_MAX = 10_000
const KEPT_DAYS = 90
const CLIENT_CHARS_MAX = 200
/** The client of all series beyond the limit. The space separates it from any tenant's name. */
export const OTHER_CLIENTS = 'all others'

export type Caller = { readonly tenant: string; readonly client: string }

export type ApiVersionUsage = {
  /** `route`: the method and the path template. Never waits and never throws. */
  readonly count: (version: string, route: string, caller: Caller) => void
  /** Writes the counts of this process. */
  readonly close: () => Promise<void>
}

export type ApiVersionUsageOptions = {
  readonly database: Pick<Database, 'transaction'>
  readonly world: Pick<World, 'sleep'>
  /** Called with the error of a write, which is tried again. */
  readonly onFailure: (error: unknown) => void
  readonly seriesMax?: number
}

/** Rows in a fixed order, so two instances that add to the same rows cannot deadlock. */
const ADD = `
  insert into api_version_usage (day, version, route, tenant_id, client, requests)
  select (now() at time zone 'utc')::date, version, route, tenant_id, client, sum(requests)
    from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[])
      as counted(version, route, tenant_id, client, requests)
    group by version, route, tenant_id, client order by version, route, tenant_id, client
  on conflict (day, version, route, tenant_id, client)
    do update set requests = api_version_usage.requests + excluded.requests`
const DELETE_OLD = `delete from api_version_usage where day < (now() at time zone 'utc')::date - ${KEPT_DAYS}`

const SEPARATOR = '\n'
const seriesOf = (version: string, route: string, { tenant, client }: Caller): string =>
  version + SEPARATOR + route + SEPARATOR + tenant + SEPARATOR + client

/** Postgres refuses U+0000 in texts. */
const storedClient = (client: string): string => client.slice(0, CLIENT_CHARS_MAX).replaceAll('\u0000', '\uFFFD')

const columnsOf = (counts: ReadonlyMap<string, number>): unknown[][] => {
  const columns: unknown[][] = [[], [], [], [], []]
  for (const [series, requests] of counts) {
    const [version, route, tenant, ...client] = series.split(SEPARATOR)
    const row = [version, route, tenant, storedClient(client.join(SEPARATOR)), requests]
    for (const [index, value] of row.entries()) columns[index]?.push(value)
  }
  return columns
}

const add = (counts: Map<string, number>, series: string, requests: number): void =>
  void counts.set(series, (counts.get(series) ?? 0) + requests)

/** Long because its functions share the counts of one process. */
export const createApiVersionUsage = ({
  database,
  world,
  onFailure,
  seriesMax = SERIES_PER_DAY_MAX,
}: ApiVersionUsageOptions): ApiVersionUsage => {
  const closing = new AbortController()
  let counts = new Map<string, number>()
  let recorded = new Set<string>()
  let day = ''
  let loop: Promise<void> | undefined

  const flush = async (): Promise<void> => {
    const written = counts
    counts = new Map()
    try {
      const today = await database.transaction(async sql => {
        await sql(ADD, columnsOf(written))
        const [row] = await sql<{ today: string }>(`select (now() at time zone 'utc')::date::text as today`)
        if (row && row.today !== day) await sql(DELETE_OLD)
        return row?.today ?? day
      })
      if (today !== day) recorded = new Set()
      day = today
    } catch (error) {
      onFailure(error)
      for (const [series, requests] of written) add(counts, series, requests)
    }
  }

  /** Runs while there is something to write, so an idle process does nothing. */
  const flushUntilIdle = async (): Promise<void> => {
    while (counts.size > 0 && !closing.signal.aborted) {
      await world.sleep(FLUSH_MS, closing.signal)
      await flush()
    }
    loop = undefined
  }

  return {
    count: (version, route, caller) => {
      let series = seriesOf(version, route, caller)
      if (!recorded.has(series)) {
        if (recorded.size < seriesMax) recorded.add(series)
        else series = seriesOf(version, route, { tenant: '', client: OTHER_CLIENTS })
      }
      add(counts, series, 1)
      if (!closing.signal.aborted) loop ??= workForAll(flushUntilIdle)
    },
    close: async () => {
      closing.abort()
      await loop
      if (counts.size > 0) await flush()
    },
  }
}

export type Usage = {
  readonly version: string
  readonly route: string
  readonly tenant_id: string
  readonly client: string
  readonly requests: number
}

/** The requests of the last days, today included: the most frequent first. */
export const apiVersionUsage = async (sql: Sql, days: number): Promise<Usage[]> => {
  const rows = await sql<Omit<Usage, 'requests'> & { requests: bigint }>(
    `select version, route, tenant_id, client, sum(requests)::bigint as requests from api_version_usage
      where day > (now() at time zone 'utc')::date - $1::int
      group by version, route, tenant_id, client order by requests desc, version, route, tenant_id, client`,
    [days],
  )
  return rows.map(row => ({ ...row, requests: Number(row.requests) }))
}
