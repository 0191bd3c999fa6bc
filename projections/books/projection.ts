import type { Columns } from '../projection.ts'
import type { Entry, EntryLine } from '../bookEntries.ts'
import { type ClosingRow, firstOpenTime } from '../closings.ts'

/** The rows of the books: accounts, entries, postings, and the balances of each account after each entry. */

/** The name of the read model, and so of its checkpoint. */
export const BOOKS = 'journal_entries_v1'

/** The categories whose events the books are made from; orders have the customers of invoices. */
export const BOOKS_CATEGORIES: readonly string[] = ['order', 'invoice', 'payment', 'period']

/** Postings stand before entries, because a copy of all tables in this order satisfies the constraints. */
export const BOOKS_TABLES = {
  postings: {
    name: 'journal_postings_v1',
    columns: {
      position: 'bigint',
      line: 'integer',
      account: 'text',
      direction: 'text',
      amount: 'bigint',
      currency: 'text',
    },
  },
  entries: {
    name: BOOKS,
    columns: {
      position: 'bigint',
      event_id: 'text',
      tenant_id: 'text',
      at: 'timestamptz',
      kind: 'text',
      order_id: 'text',
      invoice_id: 'text',
      payment_id: 'text',
      currency: 'text',
      reverses: 'text',
    },
  },
  accounts: {
    name: 'accounts_v1',
    columns: {
      tenant_id: 'text',
      code: 'text',
      kind: 'text',
      currency: 'text',
      customer_reference: 'text',
      position: 'bigint',
    },
  },
  balances: {
    name: 'account_balances_v1',
    columns: {
      tenant_id: 'text',
      account: 'text',
      position: 'bigint',
      change: 'bigint',
      debits: 'bigint',
      credits: 'bigint',
      pending: 'bigint',
    },
  },
  closings: {
    name: 'book_closings_v1',
    columns: {
      tenant_id: 'text',
      through: 'text',
      complete_to: 'bigint',
      first_open: 'timestamptz',
      position: 'bigint',
    },
  },
  customers: { name: 'book_customers_v1', columns: { id: 'text', customer_reference: 'text' } },
} as const satisfies Readonly<Record<string, { readonly name: string; readonly columns: Columns }>>

export type EntryRow = Omit<Entry, 'time' | 'lines' | 'pending'> & {
  /**
   * The time of the entry: that of its event, but never before that of an earlier entry of the tenant, nor in a closed
   * period.
   */
  readonly at: string
}
export type PostingRow = Pick<EntryLine, 'account' | 'direction' | 'amount'> & {
  readonly position: bigint
  readonly line: number
  readonly currency: string
}
export type AccountRow = {
  readonly tenant_id: string
  readonly code: string
  readonly kind: string
  readonly currency: string
  readonly customer_reference: string | null
  /** The position of its first entry. */
  readonly position: bigint
}
export type Sums = {
  readonly debits: bigint
  readonly credits: bigint
  /** The part of debits minus credits that a settlement or a failure will end. */
  readonly pending: bigint
}
export type BalanceRow = Sums & {
  readonly tenant_id: string
  readonly account: string
  readonly position: bigint
  /** Debits minus credits of this entry; zero where it only ends a pending part. */
  readonly change: bigint
}

/**
 * The state after the earlier entries: the time of the last one of each tenant, and the sums of accounts by
 * `accountKey`; and the closings of these tenants.
 */
export type EarlierSums = {
  readonly times: Map<string, string>
  readonly sums: Map<string, Sums>
  readonly closings: readonly ClosingRow[]
}

export const accountKey = (tenant: string, code: string): string => JSON.stringify([tenant, code])

export type BooksRows = {
  readonly entries: EntryRow[]
  readonly postings: PostingRow[]
  readonly accounts: AccountRow[]
  readonly balances: BalanceRow[]
}

/** The sums of an account before its first entry. */
export const NOTHING: Sums = { debits: 0n, credits: 0n, pending: 0n }

const signed = ({ direction, amount }: EntryLine): bigint => (direction === 'debit' ? amount : -amount)

const sumOf = (lines: readonly EntryLine[], account: string, value: (line: EntryLine) => bigint): bigint =>
  lines.reduce((sum, line) => (line.account === account ? sum + value(line) : sum), 0n)

const balancesAfter = (entry: Entry, { sums }: EarlierSums): readonly BalanceRow[] => {
  const { tenant_id, position, lines, pending } = entry
  const accounts = new Set([...lines, ...pending].map(({ account }) => account))
  return [...accounts].map(account => {
    const before = sums.get(accountKey(tenant_id, account)) ?? NOTHING
    const after = {
      debits: before.debits + sumOf(lines, account, line => (line.direction === 'debit' ? line.amount : 0n)),
      credits: before.credits + sumOf(lines, account, line => (line.direction === 'credit' ? line.amount : 0n)),
      pending: before.pending + sumOf(pending, account, signed),
    }
    sums.set(accountKey(tenant_id, account), after)
    return { tenant_id, account, position, change: sumOf(lines, account, signed), ...after }
  })
}

const newAccountsOf = (entry: Entry, { sums }: EarlierSums): readonly AccountRow[] => {
  const { tenant_id, currency, position } = entry
  const lineOfAccount = new Map(entry.lines.map(line => [line.account, line]))
  return [...lineOfAccount.values()]
    .filter(({ account }) => !sums.has(accountKey(tenant_id, account)))
    .map(({ account: code, kind, customer_reference }) => ({
      ...{ tenant_id, code, kind, currency, customer_reference, position },
    }))
}

const later = (time: string, other: string | undefined): string => (other !== undefined && other > time ? other : time)

const entryRowOf = ({ time, lines: _, pending: __, ...entry }: Entry, { times, closings }: EarlierSums): EntryRow => {
  const at = later(later(time, times.get(entry.tenant_id)), firstOpenTime(entry, closings))
  times.set(entry.tenant_id, at)
  return { ...entry, at }
}

/** The rows of entries in the order of the log. The times and sums of these entries are added to `earlier`. */
export const rowsOfEntries = (entries: readonly Entry[], earlier: EarlierSums): BooksRows => {
  const rows: BooksRows = { entries: [], postings: [], accounts: [], balances: [] }
  for (const entry of entries) {
    const { position, currency } = entry
    rows.entries.push(entryRowOf(entry, earlier))
    rows.postings.push(
      ...entry.lines.map(({ account, direction, amount }, line) => ({
        ...{ position, line, account, direction, amount, currency },
      })),
    )
    rows.accounts.push(...newAccountsOf(entry, earlier))
    rows.balances.push(...balancesAfter(entry, earlier))
  }
  return rows
}
