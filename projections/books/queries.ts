import { type Filters, type PageRow, pageText, type Query } from '../listQueries.ts'
import { BOOKS_TABLES } from './projection.ts'

/**
 * The queries of the books, each as of a position. The rows of a page are selected first, and their details are joined
 * to them. The order of each query is that of exactly one index, so Postgres uses this index whatever its
 * statistics say.
 */

const { entries, postings, accounts, balances } = BOOKS_TABLES

/** The positions of the tenant's last entry up to a time, and of the next one; null where there is none. */
export type BooksAt = { readonly position: bigint | null; readonly next: bigint | null }

/** Entries have milliseconds. Postgres would round further digits up, to a later entry. */
const inMilliseconds = (time: string): string => time.replace(/(\.\d{3})\d+/, '$1')

export const positionAt = (tenant: string, time: string): Query<BooksAt> => ({
  text: `select (select position from ${entries.name} where tenant_id = $1 and at <= $2::timestamptz
        order by tenant_id desc, at desc, position desc limit 1) as position,
      (select position from ${entries.name} where tenant_id = $1 and at > $2::timestamptz
        order by tenant_id, at, position limit 1) as next`,
  values: [tenant, inMilliseconds(time)],
})

/** One account with its sums as of a position; `balance_position` is that of the entry that changed them last. */
export type AccountAt = {
  readonly code: string
  readonly kind: string
  readonly currency: string
  readonly customer_reference: string | null
  readonly balance_position: bigint
  readonly debits: bigint
  readonly credits: bigint
  readonly pending: bigint
}

const SUMS = `select page.code, page.kind, page.currency, page.customer_reference, b.position as balance_position, b.debits, b.credits, b.pending
    from page cross join lateral (
      select position, debits, credits, pending from ${balances.name}
        where tenant_id = $1 and account = page.code and position <= $2
        order by tenant_id desc, account desc, position desc limit 1) b`

const ACCOUNT_MEMBERS = 'code, kind, currency, customer_reference'

export const accountAt = (tenant: string, code: string, position: bigint): Query<AccountAt> => ({
  text: `with page as materialized (
    select ${ACCOUNT_MEMBERS} from ${accounts.name} where tenant_id = $1 and code = $3 and position <= $2) ${SUMS}`,
  values: [tenant, position, code],
})

export type AccountsRequest = {
  readonly tenant: string
  /** The accounts and sums as of this position. */
  readonly position: bigint
  /** The code after which the page begins. */
  readonly after: string | undefined
  readonly limit: number
  readonly currency?: string | undefined
  readonly kind?: string | undefined
  /** Only accounts whose customer_reference is one of these. */
  readonly customer?: string | undefined
}

/** The accounts that have an entry, by code. Without filters they are the rows of the trial balance. */
export const accountsPage = ({
  tenant,
  position,
  after,
  limit,
  customer,
  ...filters
}: AccountsRequest): Query<PageRow<AccountAt, string>> => {
  const values: unknown[] = [tenant, position, after ?? '', limit]
  const where = Object.entries(filters).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name} = $${values.push(value)}`],
  )
  if (customer !== undefined) where.push(`customer_reference = $${values.push(customer)}`)
  const rows = `select tenant_id, position, ${ACCOUNT_MEMBERS} from ${accounts.name}
      where (tenant_id, code) > ($1, $3) and tenant_id <= $1`
  const examined = {
    rows,
    order: 'tenant_id, code',
    key: 'to_json(code)',
    where: ['position <= $2', ...where],
    limit: '$4',
  }
  return { text: pageText(examined, SUMS, 'code'), values }
}

/** The sums of the debits and of the credits of all accounts with a currency. */
export type TotalsAt = { readonly currency: string; readonly debits: bigint; readonly credits: bigint }

/** The totals of the trial balance as of the position. They need the sums of every account, and not of one page. */
export const totalsAt = ({
  tenant,
  position,
  currency,
}: Pick<AccountsRequest, 'tenant' | 'position' | 'currency'>): Query<TotalsAt> => ({
  text: `select a.currency, sum(b.debits)::bigint as debits, sum(b.credits)::bigint as credits
    from ${accounts.name} a cross join lateral (
      select debits, credits from ${balances.name}
        where tenant_id = $1 and account = a.code and position <= $2
        order by tenant_id desc, account desc, position desc limit 1) b
    where a.tenant_id = $1 and a.position <= $2 and ($3::text is null or a.currency = $3)
    group by a.currency order by a.currency`,
  values: [tenant, position, currency ?? null],
})

/** An entry with its postings, and the event of the entry that reverses it, as of a position. */
export type EntryAt = {
  readonly position: bigint
  readonly event_id: string
  readonly at: string
  readonly kind: string
  readonly order_id: string
  readonly invoice_id: string
  readonly payment_id: string | null
  readonly currency: string
  readonly reverses: string | null
  readonly reversed_by: string | null
  readonly postings: readonly { readonly account: string; readonly direction: string; readonly amount: number }[]
}

const ENTRY_MEMBERS = [
  'position',
  'event_id',
  'at',
  'kind',
  'order_id',
  'invoice_id',
  'payment_id',
  'currency',
  'reverses',
]
const membersOf = (table: string): string => ENTRY_MEMBERS.map(name => `${table}.${name}`).join(', ')

const DETAILS = `select ${membersOf('e')},
      (select event_id from (select * from ${entries.name} where reverses = e.event_id offset 0) r
        where r.position <= $2) as reversed_by,
      (select json_agg(json_build_object('account', p.account, 'direction', p.direction, 'amount', p.amount) order by p.line)
        from ${postings.name} p where p.position = e.position) as postings
    from page cross join lateral (select * from ${entries.name} where position = page.position offset 0) e`

export const entryAt = (tenant: string, eventId: string, position: bigint): Query<EntryAt> => ({
  // `offset 0` keeps the other conditions, and their indexes, out of the look-up by the unique id.
  text: `with page as materialized (
    select e.position from (select * from ${entries.name} where event_id = $3 offset 0) e
      where e.tenant_id = $1 and e.position <= $2) ${DETAILS}`,
  values: [tenant, position, eventId],
})

export type EntriesRequest = {
  readonly tenant: string
  /** Entries up to this position, which is inclusive. */
  readonly position: bigint
  /** The position before which the page begins. */
  readonly before: bigint | undefined
  readonly limit: number
  readonly account?: string | undefined
  readonly order_id?: string | undefined
  readonly invoice_id?: string | undefined
  readonly payment_id?: string | undefined
}

/** The ids to filter by, that with the fewest entries first: its index is followed, and the others are conditions. */
const ID_FILTERS = ['payment_id', 'invoice_id', 'order_id'] as const

const OF_ACCOUNT = `exists (select from ${balances.name} b
  where b.tenant_id = $1 and b.account = $5 and b.position = looked.position and b.change <> 0)`

/** The entries of an account, by the index of its balances; some of these change no more than what is pending. */
const ROWS_OF_ACCOUNT = {
  rows: `select tenant_id, account, position, change from ${balances.name}
    where (tenant_id, account, position) < ($1, $5, $3) and (tenant_id, account) >= ($1, $5)`,
  order: 'tenant_id desc, account desc, position desc',
  where: ['change <> 0'],
}

/** The entries before a position whose column has the value, in the order that only the index of the column has. */
const rowsOf = (column: string, value: string) => ({
  rows: `select position, tenant_id, order_id, invoice_id, payment_id from ${entries.name}
    where (${column}, position) < (${value}, $3) and ${column} >= ${value}`,
  order: `${column} desc, position desc`,
})

/** Newest first. */
export const entriesPage = (request: EntriesRequest): Query<PageRow<EntryAt, string>> => {
  const { tenant, position, before, limit, account } = request
  const end = before === undefined || before > position ? position + 1n : before
  const values: unknown[] = [tenant, position, end, limit]
  if (account !== undefined) values.push(account)
  const [first, ...others] = ID_FILTERS.filter(name => request[name] !== undefined)
  const where = [
    'tenant_id = $1',
    ...others.map(name => `${name} = $${values.push(request[name])}`),
    ...(account === undefined ? [] : [OF_ACCOUNT]),
  ]
  const source =
    first === undefined
      ? account === undefined
        ? { ...rowsOf('tenant_id', '$1'), where }
        : ROWS_OF_ACCOUNT
      : { ...rowsOf(first, `$${values.push(request[first])}`), where }
  return {
    text: pageText({ ...source, key: 'to_json(position::text)', limit: '$4' }, DETAILS, 'position desc'),
    values,
  }
}

/** One posting with its entry. `debits` and `credits` are the sums of its account after the entry. */
export type PostingAt = Omit<EntryAt, 'reversed_by' | 'postings'> & {
  readonly line: number
  readonly account: string
  readonly direction: string
  readonly amount: bigint
  readonly customer_reference: string | null
  readonly debits: bigint
  readonly credits: bigint
}

export type PostingsRequest = { readonly tenant: string; readonly filters: Filters }

/**
 * The filters of postings, as conditions on the tables of `POSTINGS`. The first moment is included, since it is the
 * time of the entries that a closing has moved to the first open day.
 */
const POSTING_FILTERS: Readonly<Record<string, string>> = {
  account: 'b.account =',
  order_id: 'e.order_id =',
  invoice_id: 'e.invoice_id =',
  payment_id: 'e.payment_id =',
  created_after: 'e.at >=',
  created_before: 'e.at <',
}

const POSTINGS = `from ${entries.name} e
  join ${postings.name} p on p.position = e.position
  join ${balances.name} b on b.tenant_id = e.tenant_id and b.account = p.account and b.position = e.position
  join ${accounts.name} a on a.tenant_id = e.tenant_id and a.code = p.account`

const postingsWhere = ({ tenant, filters }: PostingsRequest): { where: string; values: unknown[] } => {
  const values: unknown[] = [tenant]
  const conditions = Object.entries(filters).flatMap(([name, value]) => {
    if (value === undefined) return []
    const condition = POSTING_FILTERS[name]
    if (condition === undefined) throw new Error(`Postings have no filter ${name}.`)
    const type = name.startsWith('created_') ? '::timestamptz' : ''
    return [`and ${condition} $${values.push(value)}${type}`]
  })
  return { where: `where e.tenant_id = $1 and b.tenant_id = $1 ${conditions.join(' ')}`, values }
}

/** All postings in the order of the journal. */
export const allPostings = (request: PostingsRequest): Query<PostingAt> => {
  const { where, values } = postingsWhere(request)
  return {
    text: `select ${membersOf('e')}, p.line, p.account, p.direction, p.amount,
        a.customer_reference, b.debits, b.credits
      ${POSTINGS} ${where} order by e.position, p.line`,
    values,
  }
}

export const postingCount = (request: PostingsRequest): Query<{ count: bigint }> => {
  const { where, values } = postingsWhere(request)
  return { text: `select count(*) as count ${POSTINGS} ${where}`, values }
}
