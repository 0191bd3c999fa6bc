import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../../../src/ports.ts'
import { relationExists } from '../../../src/schema/existingRelations.ts'
import { FEED_LEASES, type FeedLease, leaseLock } from '../../../src/schema/locks.ts'
import { type Check, finding, ok } from './finding.ts'

/** The leases without whose holder something is late. `signs`: a head is to be signed. */
export const neededLeases = ({ hasKafka, signs }: Record<'hasKafka' | 'signs', boolean>): readonly FeedLease[] => [
  'projector',
  'worker',
  ...(signs ? (['sealer'] as const) : []),
  'rebuild',
  ...(hasKafka ? (['publisher', 'subscriptions'] as const) : []),
]

/** An advisory lock of 64 bits is shown as two halves of 32. */
const HELD = `select (classid::bigint << 32 | objid::bigint) as lock from pg_locks
  where locktype = 'advisory' and objsubid = 1 and granted
    and database = (select oid from pg_database where datname = current_database())`
const LEASES = `select name, holder, epoch, date_trunc('second', taken_at)::text as since
  from ledger_meta.leases order by name`

type Row = { readonly name: string; readonly holder: string; readonly epoch: bigint; readonly since: string }

/** The leases in the database; none before the first service has run. */
const readLeases = async ({ sql }: Database) => {
  const rows = (await relationExists(sql, 'ledger_meta.leases')) ? await sql<Row>(LEASES) : []
  const held = new Set((await sql<{ lock: bigint }>(HELD)).map(({ lock }) => lock))
  const names = [...new Set([...FEED_LEASES, ...rows.map(({ name }) => name)])]
  return names.map(name => {
    const row = rows.find(lease => lease.name === name)
    return {
      name,
      /** The host and process id of the process that has the lease, or had it last. */
      holder: row?.holder ?? null,
      since: row?.since ?? null,
      /** The number of holders that there were. */
      epoch: row === undefined ? null : String(row.epoch),
      held: held.has(leaseLock(name)),
    }
  })
}
export type LeaseReport = Awaited<ReturnType<typeof readLeases>>[number]

const GRACE_MS = 5_000
const POLL_MS = 250

/** Waits for GRACE_MS at most until the needed leases are held: a new process takes them in turn. */
export const awaitLeases = async (database: Database, needed: readonly string[]): Promise<readonly LeaseReport[]> => {
  const deadlineMs = performance.now() + GRACE_MS
  for (;;) {
    const leases = await readLeases(database)
    const isComplete = leases.every(({ held, name }) => held || !needed.includes(name))
    if (isComplete || performance.now() >= deadlineMs) return leases
    await sleep(POLL_MS)
  }
}

/** `needed` are the leases without whose holder something is late. */
export const checkLocks = (leases: readonly LeaseReport[], needed: readonly string[]): Check => {
  const held = leases.filter(lease => lease.held)
  const missing = leases.filter(lease => !lease.held && needed.includes(lease.name))
  const holders = held.map(({ name, holder, since }) => `${name}: ${holder ?? 'unknown'} since ${since}`).join('; ')
  if (missing.length === 0) return ok('locks', holders === '' ? 'none is held' : holders)
  const names = missing.map(({ name, holder }) => (holder === null ? name : `${name} (last ${holder})`)).join(', ')
  return finding(
    'locks',
    `No process holds ${names}.${holders === '' ? '' : ` ${holders}.`}`,
    'Start a process with that role (LEDGER_ROLES); a process that hangs loses its lease after 8 s, and another one takes it.',
  )
}
