import { LRUCache } from 'lru-cache'
import { SYSTEM_TENANT } from '../../../streams/envelope.ts'
import type { Database, Sql, World } from '../../ports.ts'
import { type ByteQuota, maxBytesFor, QuotaExceeded, type QuotaUse } from './byteQuota.ts'
import { DAY_MS, dayOf } from '../../lib/time.ts'

/**
 * Bytes are counted in memory, and added to Postgres about once a second, for all tenants in one statement. Beyond
 * AHEAD_SHARE of a quota in memory, commands of the tenant wait for that: quotas are exceeded by at most that share for
 * each instance, and the commands in flight. Without Postgres each instance goes by its own count.
 */

const FLUSH_MS = 1_000
const RETRY_MS = 5_000
const AHEAD_SHARE = 0.02
const KEPT_DAYS = 30
const TENANTS_MAX = 10_000

export type TenantBytes = ByteQuota & {
  /** Adds what is counted in memory alone. */
  readonly close: () => Promise<void>
}

export type TenantBytesOptions = {
  readonly database: Pick<Database, 'sql'>
  readonly world: Pick<World, 'now' | 'sleep'>
  readonly bytesPerDay: number
  /** Called with the error of a statement, which is repeated. If its outcome is unknown, the bytes may count twice. */
  readonly onFailure: (error: unknown) => void
}

/** In a fixed order, so two instances that add to the same rows cannot deadlock. */
const ADD = `
  insert into tenant_bytes (day, tenant_id, bytes)
  select $1::date, tenant_id, bytes from unnest($2::text[], $3::bigint[]) as added(tenant_id, bytes) order by tenant_id
  on conflict (day, tenant_id) do update set bytes = tenant_bytes.bytes + excluded.bytes
  returning tenant_id, bytes`
const DELETE_OLD = `delete from tenant_bytes where day < $1::date - ${KEPT_DAYS}`

type Counts = Map<string, number>

const add = (counts: Counts, tenant: string, bytes: number): void =>
  void counts.set(tenant, (counts.get(tenant) ?? 0) + bytes)

/** The counts of one instance. */
class Usage {
  /** As of the last statement, the bytes of all instances today. */
  readonly #stored = new LRUCache<string, number>({ max: TENANTS_MAX })
  #ahead: Counts = new Map()
  #sent: Counts = new Map()
  #day = ''

  /** Usage begins anew each day, at 00:00 UTC. */
  enter(day: string): void {
    if (day !== this.#day) this.#stored.clear()
    this.#day = day
  }

  uncounted(tenant: string): number {
    return (this.#sent.get(tenant) ?? 0) + (this.#ahead.get(tenant) ?? 0)
  }

  used(tenant: string): number {
    return (this.#stored.get(tenant) ?? 0) + this.uncounted(tenant)
  }

  count(tenant: string, bytes: number): void {
    add(this.#ahead, tenant, bytes)
  }

  get isCounted(): boolean {
    return this.#ahead.size === 0
  }

  /** Adds what is counted in memory to the table. */
  async send(sql: Sql, day: string): Promise<void> {
    this.#sent = this.#ahead
    this.#ahead = new Map()
    try {
      const columns = [[...this.#sent.keys()], [...this.#sent.values()]]
      const rows = await sql<{ tenant_id: string; bytes: bigint }>(ADD, [day, ...columns])
      for (const { tenant_id, bytes } of rows) this.#stored.set(tenant_id, Number(bytes))
    } catch (error) {
      for (const [tenant, bytes] of this.#sent) add(this.#ahead, tenant, bytes)
      throw error
    } finally {
      this.#sent = new Map()
    }
  }
}

/**
 * Long because its functions share the counts of one process. The loop begins here, not in a request, whose account
 * would wait in its tenant's queue for the connection.
 */
export const openTenantBytes = ({ database, world, bytesPerDay, onFailure }: TenantBytesOptions): TenantBytes => {
  const usage = new Usage()
  const closing = new AbortController()
  let work = Promise.withResolvers<void>()
  let hurry = new AbortController()
  let added = Promise.withResolvers<void>()
  let isFailing = false
  let cleanedOn = ''

  const flush = async (): Promise<void> => {
    const day = dayOf(world.now())
    try {
      usage.enter(day)
      await usage.send(database.sql, day)
      if (day !== cleanedOn) await database.sql(DELETE_OLD, [day])
      cleanedOn = day
      isFailing = false
    } catch (error) {
      isFailing = true
      onFailure(error)
    }
  }

  const flushWhenDue = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      await work.promise
      await world.sleep(isFailing ? RETRY_MS : FLUSH_MS, AbortSignal.any([closing.signal, hurry.signal]))
      work = Promise.withResolvers()
      hurry = new AbortController()
      if (!usage.isCounted) await flush()
      if (!usage.isCounted) work.resolve()
      added.resolve()
      added = Promise.withResolvers()
    }
    added.resolve()
  }
  const loop = flushWhenDue()

  const refuseIfExceeded = (tenant: string, use: QuotaUse): void => {
    const nowMs = world.now()
    usage.enter(dayOf(nowMs))
    const usedBytes = usage.used(tenant)
    if (usedBytes >= maxBytesFor(use, bytesPerDay))
      throw new QuotaExceeded({ usedBytes, bytesPerDay, resetMs: DAY_MS - (nowMs % DAY_MS) })
  }

  return {
    check: async (tenant, use) => {
      if (use === 'completion') return
      refuseIfExceeded(tenant, use)
      if (usage.uncounted(tenant) <= bytesPerDay * AHEAD_SHARE || isFailing || closing.signal.aborted) return
      hurry.abort()
      await added.promise
      refuseIfExceeded(tenant, use)
    },
    count: (tenant, bytes) => {
      if (tenant === SYSTEM_TENANT) return
      usage.count(tenant, bytes)
      work.resolve()
    },
    close: async () => {
      closing.abort()
      work.resolve()
      await loop
      if (!usage.isCounted) await flush()
    },
  }
}

const TENANTS_LISTED_MAX = 20

export type TenantUsage = { readonly tenant: string; readonly bytes: number }

/** The tenants with most bytes today, of those that have at least so many; the largest first. */
export const tenantsAbove = async (sql: Sql, bytes: number): Promise<readonly TenantUsage[]> => {
  const rows = await sql<{ tenant_id: string; bytes: bigint }>(
    `select tenant_id, bytes from tenant_bytes
      where day = (now() at time zone 'utc')::date and bytes >= $1 order by bytes desc, tenant_id limit ${TENANTS_LISTED_MAX}`,
    [Math.ceil(bytes)],
  )
  return rows.map(row => ({ tenant: row.tenant_id, bytes: Number(row.bytes) }))
}
