import { type EarlierEntries, type Entry, entriesOf, neededFor } from '../../projections/bookEntries.ts'
import {
  accountKey,
  BOOKS,
  BOOKS_CATEGORIES,
  BOOKS_TABLES,
  type BooksRows,
  type EarlierSums,
  NOTHING,
  rowsOfEntries,
  type Sums,
} from '../../projections/books/projection.ts'
import { type ClosingRow, closingsOf } from '../../projections/closings.ts'
import type { CopyRows } from '../../projections/projection.ts'
import { accountCode } from './accountCodes.ts'
import type { Sql } from '../ports.ts'
import { inRanges } from './positionRanges.ts'
import type { ReadModel } from './readModel.ts'
import { arraysOf, insertOf, tryCopy } from './rowArrays.ts'

/**
 * Entries arrive in the order of the log, and continue the sums of the last one. An entry that was parked is inserted
 * between others, and the sums and times of later ones are corrected.
 */

const { entries, postings, accounts, balances, customers, closings } = BOOKS_TABLES
const WRITTEN = [customers, accounts, postings, balances, entries] as const

/** The parameters of the statement are the arrays of all tables, in the order of WRITTEN. */
const insertInto = (table: (typeof WRITTEN)[number]): string => {
  const before = WRITTEN.slice(0, WRITTEN.indexOf(table))
  const first = before.reduce((sum, { columns }) => sum + Object.keys(columns).length, 1)
  return insertOf(table.name, table.columns, first)
}

/** One statement, so the constraints of entries and postings see both. */
const WRITE = `with customer as (${insertInto(customers)}
    on conflict (id) do update set customer_reference = excluded.customer_reference),
  account as (${insertInto(accounts)}
    on conflict (tenant_id, code) do update set position = least(${accounts.name}.position, excluded.position)),
  posting as (${insertInto(postings)}), balance as (${insertInto(balances)})
  ${insertInto(entries)}`

const STORED_CUSTOMERS = `select id, customer_reference from ${customers.name} where id = any($1::text[])`

/** `offset 0` keeps the condition of the kind, and the order, out of the look-up by the index of the id. */
const REVERSED_ENTRIES = `select n.key, e.event_id from unnest($1::text[], $2::text[], $3::text[]) n(key, kind, id)
  cross join lateral (
    select event_id from (
      (select event_id, kind, position from ${entries.name} where payment_id = n.id offset 0) union all
      (select event_id, kind, position from ${entries.name} where invoice_id = n.id offset 0)) own
    where kind = n.kind order by position limit 1) e`

/**
 * The last entry of each tenant, the last balance of each account before a position, and the closings. Each query has
 * the order of exactly one index, so Postgres uses that without statistics.
 */
const EARLIER = `select t.tenant_id, null as account, null as through, e.position, e.at, null::bigint as debits, null::bigint as credits,
      null::bigint as pending
    from unnest($1::text[]) t(tenant_id) cross join lateral (
      select position, at from ${entries.name}
        where (tenant_id, position) < (t.tenant_id, $4) and tenant_id >= t.tenant_id
        order by tenant_id desc, position desc limit 1) e
  union all
  select t.tenant_id, null, c.through, c.complete_to, c.first_open, null, null, null
    from unnest($1::text[]) t(tenant_id) cross join lateral (
      select through, complete_to, first_open from ${closings.name} where tenant_id = t.tenant_id
        order by tenant_id, complete_to) c
  union all
  select a.tenant_id, a.account, null, b.position, null, b.debits, b.credits, b.pending
    from unnest($2::text[], $3::text[]) a(tenant_id, account) cross join lateral (
      select position, debits, credits, pending from ${balances.name}
        where tenant_id = a.tenant_id and account = a.account and position < $4
        order by tenant_id desc, account desc, position desc limit 1) b`

type EarlierRow = {
  readonly tenant_id: string
  readonly account: string | null
  /** Of a closing alone, whose `position` is the one up to which the books were complete. */
  readonly through: string | null
  readonly position: bigint
  readonly at: string
} & Sums

/** Greater than every position of a log. */
const AFTER_LOG = 2n ** 63n - 1n

const earlierEntries = async (sql: Sql, events: Parameters<typeof neededFor>[0]): Promise<EarlierEntries> => {
  const needed = neededFor(events)
  const stored =
    needed.customers.length === 0
      ? []
      : await sql<{ id: string; customer_reference: string | null }>(STORED_CUSTOMERS, [needed.customers])
  const keys = needed.entries.map(key => [key, ...key.split('/')])
  const reversible =
    keys.length === 0
      ? []
      : await sql<{ key: string; event_id: string }>(
          REVERSED_ENTRIES,
          [0, 1, 2].map(part => keys.map(key => key[part])),
        )
  return {
    customers: new Map(stored.map(({ id, customer_reference }) => [id, customer_reference])),
    entries: new Map(reversible.map(({ key, event_id }) => [key, event_id])),
    accountCode,
  }
}

type Earlier = EarlierSums & { readonly last: bigint }

const earlierSums = async (sql: Sql, written: readonly Entry[], before: bigint): Promise<Earlier> => {
  const tenants = [...new Set(written.map(({ tenant_id }) => tenant_id))]
  const changed = written.flatMap(({ tenant_id, lines, pending }) =>
    [...lines, ...pending].map(({ account }) => [accountKey(tenant_id, account), tenant_id, account] as const),
  )
  const distinct = [...new Map(changed.map(([key, ...account]) => [key, account])).values()]
  const values = [tenants, distinct.map(([tenant]) => tenant), distinct.map(([, account]) => account), before]
  const rows = await sql<EarlierRow>(EARLIER, values)
  const periods: ClosingRow[] = []
  const earlier = { times: new Map<string, string>(), sums: new Map<string, Sums>(), closings: periods, last: -1n }
  for (const { tenant_id, account, through, position, at, ...sums } of rows) {
    if (through !== null) periods.push({ tenant_id, through, complete_to: position, first_open: at, position })
    else if (account !== null) earlier.sums.set(accountKey(tenant_id, account), sums)
    else {
      earlier.times.set(tenant_id, at)
      if (position > earlier.last) earlier.last = position
    }
  }
  return earlier
}

type Written = BooksRows & { readonly customers: readonly object[] }

const insert = async (sql: Sql, rows: Written): Promise<void> => {
  const byTable = [rows.customers, rows.accounts, rows.postings, rows.balances, rows.entries]
  await sql(
    WRITE,
    WRITTEN.flatMap(({ columns }, index) => arraysOf(columns, byTable[index] ?? [])),
  )
}

/** Writes rows of entries that are new. Postings are copied before entries, because the constraints of entries read them. */
const insertNew = async (sql: Sql, rows: Written, copy?: CopyRows): Promise<void> => {
  const added = [
    { table: postings, rows: rows.postings },
    { table: balances, rows: rows.balances },
    { table: entries, rows: rows.entries },
  ]
  if (!(await tryCopy(added, copy))) return insert(sql, rows)
  if (rows.customers.length + rows.accounts.length > 0)
    await insert(sql, { ...rows, postings: [], balances: [], entries: [] })
}

/**
 * Times grow with positions, so the entries to move are those before the first one with that time; no others are read.
 */
const MOVE_TO_TIME = `update ${entries.name} set at = $3 where tenant_id = $1 and position > $2 and position <
  coalesce((select position from ${entries.name} where tenant_id = $1 and (at, position) > ($3, $2)
    order by tenant_id, at, position limit 1), ${AFTER_LOG})`

const CORRECT_SUMS = `update ${balances.name} set debits = debits + $5, credits = credits + $6, pending = pending + $7
  where tenant_id = $1 and account = $2 and position > $3 and position <= $4`

const correctSums = (
  sql: Sql,
  { tenant_id, account, position }: { readonly tenant_id: string; readonly account: string; readonly position: bigint },
  added: readonly bigint[],
): Promise<void> =>
  inRanges(
    sql,
    { rows: `${balances.name} where tenant_id = $1 and account = $2`, values: [tenant_id, account] },
    (after, last) => sql(CORRECT_SUMS, [tenant_id, account, after, last, ...added]),
    position,
  )

/** Inserts an entry before later ones, unless it is stored already. */
const insertLate = async (sql: Sql, entry: Entry): Promise<void> => {
  const { tenant_id, position } = entry
  const [stored] = await sql(`select from ${entries.name} where position = $1`, [position])
  if (stored !== undefined) return
  const earlier = await earlierSums(sql, [entry], position)
  const before = new Map(earlier.sums)
  const rows = rowsOfEntries([entry], earlier)
  await insert(sql, { ...rows, customers: [] })
  for (const { at } of rows.entries) await sql(MOVE_TO_TIME, [tenant_id, position, at])
  for (const balance of rows.balances) {
    const { debits, credits, pending } = before.get(accountKey(tenant_id, balance.account)) ?? NOTHING
    await correctSums(sql, balance, [balance.debits - debits, balance.credits - credits, balance.pending - pending])
  }
}

const INSERT_CLOSINGS = `${insertOf(closings.name, closings.columns)} on conflict (position) do nothing`

/**
 * Before the entries of the batch, whose times depend on it. Later entries of the period move to the first open moment.
 */
const writeClosings = async (sql: Sql, rows: readonly ClosingRow[]): Promise<void> => {
  if (rows.length === 0) return
  await sql(INSERT_CLOSINGS, arraysOf(closings.columns, rows))
  for (const { tenant_id, complete_to, first_open } of rows)
    await sql(MOVE_TO_TIME, [tenant_id, complete_to, first_open])
}

export const booksReadModel: ReadModel = {
  name: BOOKS,
  categories: BOOKS_CATEGORIES,
  write: async (sql, events, copy) => {
    // A batch with a poison event is written stream by stream (readModelWriter.ts).
    const inOrder = events.toSorted((a, b) => (a.position < b.position ? -1 : 1))
    await writeClosings(sql, closingsOf(inOrder))
    const booked = entriesOf(inOrder, await earlierEntries(sql, inOrder))
    const withoutEntries = { entries: [], accounts: [], postings: [], balances: [], customers: booked.customers }
    const [first] = booked.entries
    if (first === undefined) {
      if (booked.customers.length > 0) await insert(sql, withoutEntries)
      return
    }
    const earlier = await earlierSums(sql, booked.entries, AFTER_LOG)
    if (first.position > earlier.last)
      return insertNew(sql, { ...withoutEntries, ...rowsOfEntries(booked.entries, earlier) }, copy)
    if (booked.customers.length > 0) await insert(sql, withoutEntries)
    for (const entry of booked.entries) await insertLate(sql, entry)
  },
}
