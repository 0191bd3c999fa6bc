import { LRUCache } from 'lru-cache'
import type { Database, Sql, World } from '../../ports.ts'
import { DAY_MS, dayOf } from '../../lib/time.ts'

/**
 * An outside issuer does not tell whom it has removed, so a subscription is stopped when its creator was not seen with
 * a valid credential for SUBSCRIPTION_CONFIRMATION. One without a row counts as seen on the day of the first check,
 * also after Postgres was restored.
 */

const FLUSH_MS = 5_000
const RETRY_MS = 30_000
/** The callers that a process knows to have noted today, and those that wait to be noted. */
const CALLERS_MAX = 10_000

/** The caller as a credential names it: another client of the same subject is another caller. */
export type SeenCaller = { readonly tenant: string; readonly subject: string; readonly client: string }

export type CallersSeen = {
  /** Notes once a day that the caller was seen. Never waits and never throws. */
  readonly note: (caller: SeenCaller) => void
  /** Writes what is not written yet. */
  readonly close: () => Promise<void>
}

export type CallersSeenOptions = {
  readonly database: Pick<Database, 'sql'>
  readonly world: Pick<World, 'now' | 'sleep'>
  /** Called with the error of a statement, which is repeated. */
  readonly onFailure: (error: unknown) => void
}

/** The time at which the confirmation of a subscription ends whose creator was last seen on this day. */
export const confirmByMs = (seenOn: string, confirmationMs: number): number =>
  Date.parse(seenOn) + DAY_MS + confirmationMs

/** Without an effect on the day of a creator that is known already. */
export const noteCreator = async (sql: Sql, id: string, caller: SeenCaller, day: string): Promise<void> => {
  const { tenant, subject, client } = caller
  await sql(
    `insert into subscription_creators (subscription_id, tenant_id, subject, client, seen_on)
      values ($1, $2, $3, $4, $5::date) on conflict (subscription_id) do nothing`,
    [id, tenant, subject, client, day],
  )
}

export const confirmSubscription = async (sql: Sql, id: string, day: string): Promise<void> => {
  await sql(
    'update subscription_creators set seen_on = greatest(seen_on, $2::date) where subscription_id = $1 returning 1',
    [id, day],
  )
}

/** In a fixed order, so two instances that change the same rows cannot deadlock. */
const NOTE = `
  with due as (
    select c.subscription_id from subscription_creators c
    join unnest($2::text[], $3::text[], $4::text[]) as seen(tenant_id, subject, client) using (tenant_id, subject, client)
    where c.seen_on < $1::date order by c.subscription_id for update of c)
  update subscription_creators c set seen_on = $1::date from due where c.subscription_id = due.subscription_id`

const keyOf = ({ tenant, subject, client }: SeenCaller): string => JSON.stringify([tenant, subject, client])

/**
 * Long because its functions share the callers of one process. The loop begins here, not in a request, whose account
 * would wait in its tenant's queue for the connection.
 */
export const openCallersSeen = ({ database, world, onFailure }: CallersSeenOptions): CallersSeen => {
  const closing = new AbortController()
  const noted = new LRUCache<string, string>({ max: CALLERS_MAX })
  let waiting = new Map<string, SeenCaller>()
  let work = Promise.withResolvers<void>()
  let isFailing = false

  const flush = async (): Promise<void> => {
    const written = waiting
    waiting = new Map()
    const callers = [...written.values()]
    const columns = (['tenant', 'subject', 'client'] as const).map(name => callers.map(caller => caller[name]))
    try {
      await database.sql(NOTE, [dayOf(world.now()), ...columns])
      isFailing = false
    } catch (error) {
      waiting = new Map([...written, ...waiting].slice(0, CALLERS_MAX))
      isFailing = true
      onFailure(error)
    }
  }

  const flushWhenDue = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      await work.promise
      await world.sleep(isFailing ? RETRY_MS : FLUSH_MS, closing.signal)
      work = Promise.withResolvers()
      if (waiting.size > 0) await flush()
      if (waiting.size > 0) work.resolve()
    }
  }
  const loop = flushWhenDue()

  return {
    note: caller => {
      const key = keyOf(caller)
      const day = dayOf(world.now())
      // A caller for whom there is no room is noted with a later request.
      if (noted.get(key) === day || waiting.size >= CALLERS_MAX) return
      noted.set(key, day)
      waiting.set(key, caller)
      work.resolve()
    },
    close: async () => {
      closing.abort()
      work.resolve()
      await loop
      if (waiting.size > 0) await flush()
    },
  }
}
