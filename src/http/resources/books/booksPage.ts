import { z } from 'zod'
import { totalView } from '../../../../projections/bookViews.ts'
import type { AccountsRequest, TotalsAt } from '../../../../projections/books/queries.ts'
import { waitForMinPosition } from '../collection.ts'
import { hasErased, withTexts } from '../../../personalTexts/personalTexts.ts'
import { PRIVATE_CACHING, replyWithTag, textsFor } from '../commonReplies.ts'
import { etagOfRow } from '../../request/entityTags.ts'
import { type PageRow, pageOfRows, type Query } from '../../../../projections/listQueries.ts'
import type { Row } from '../../../ports.ts'
import { Problem } from '../../problems/problemCatalogue.ts'
import type { Reply } from '../../route.ts'
import type { AnyCall, Call } from '../../services.ts'
import { definedOnly, keyInCursor, pageReply } from '../paging.ts'
import { type AsOf, booksAt } from './booksAt.ts'

/** The totals need every account of the tenant, so they are summed once for all pages. */
const sum = z.string().transform(BigInt)
const totalsSchema = z.array(z.object({ currency: z.string(), debits: sum, credits: sum }))
const cursorSchema = z.object({ position: z.string(), after: z.string(), totals: totalsSchema.optional() })

export type BookFilters = Readonly<Record<string, string | undefined>>
type ListQuery = AsOf & { readonly limit: number; readonly cursor?: string | undefined }
export type PageAt = Pick<AccountsRequest, 'tenant' | 'position' | 'after' | 'limit'>
type BookList<R extends Row> = {
  readonly page: (at: PageAt, filters: BookFilters) => Query<PageRow<R, string>>
  readonly keyOf: (row: R) => string
  readonly render: (row: R) => object
  /** The item that the list belongs to; 404 if it has no row. */
  readonly ofItem?: Pick<BookItem<Row>, 'query' | 'detailIfAbsent'>
  /** The totals of the whole list as of the position, which are added to each page. */
  readonly totals?: (position: bigint) => Promise<readonly TotalsAt[]>
}

/** A number of JSON would lose digits of a large sum. */
const textsOf = ({ currency, debits, credits }: TotalsAt) => ({
  currency,
  debits: String(debits),
  credits: String(credits),
})

/** One page; the cursor keeps the position, so all pages of a list are of one moment. */
export const readBooksPage = async <R extends Row>(
  call: Call<unknown, ListQuery, unknown>,
  { page, keyOf, render, ofItem, totals: totalsAt }: BookList<R>,
): Promise<Reply> => {
  const { limit, cursor, ...criteria } = call.query
  const { as_of: _, as_of_position: __, ...filters } = criteria
  const { tenant } = call.principal
  const binding = { tenant, path: call.path, filters: definedOnly(criteria) }
  const key = keyInCursor(call, cursor, { binding, schema: cursorSchema })
  const position = await booksAt(call, call.query, key && BigInt(key.position))
  if (ofItem !== undefined) await firstRow(call, ofItem, position)
  const totals = key?.totals ?? (await totalsAt?.(position))
  const { text, values } = page({ tenant, position, after: key?.after, limit: limit + 1 }, filters)
  const rows = await call.lists.sql<PageRow<R, string>>(text, values)
  const { items, next } = pageOfRows(rows, limit, keyOf)
  const texts = await textsFor(call, items)
  const asOfPosition = position.toString()
  const kept = totals && { totals: totals.map(textsOf) }
  const reply = pageReply(
    call,
    {
      items: items.map(row => render(withTexts(row, texts))),
      next: next === undefined ? undefined : { position: asOfPosition, after: next, ...kept },
      ...{ binding, asOfPosition, parameters: { ...criteria, limit } },
    },
    { ...PRIVATE_CACHING, ...waitForMinPosition(call) },
  )
  return totals === undefined ? reply : { ...reply, body: { ...(reply.body as object), totals: totals.map(totalView) } }
}

/** Throws Problem `resource_not_found` if there is no row. */
const firstRow = async <R extends Row>(
  { database, principal }: AnyCall,
  { query, detailIfAbsent }: Pick<BookItem<R>, 'query' | 'detailIfAbsent'>,
  position: bigint,
): Promise<R> => {
  const { text, values } = query(principal.tenant, position)
  const [row] = await database.sql<R>(text, values)
  if (row === undefined) throw new Problem('resource_not_found', detailIfAbsent ? { detail: detailIfAbsent } : {})
  return row
}

type BookItem<R extends Row> = {
  readonly query: (tenant: string, position: bigint) => Query<R>
  /** The detail of the 404; by default the advice on any resource. */
  readonly detailIfAbsent?: string
  readonly render: (row: R) => object
}

/** One item as of the position; 404 if the tenant has no such item then. */
export const readBooksItem = async <R extends Row>(
  call: Call<unknown, AsOf, unknown>,
  { render, ...item }: BookItem<R>,
): Promise<Reply> => {
  const position = await booksAt(call, call.query)
  const row = await firstRow(call, item, position)
  const texts = await textsFor(call, [row])
  const etag = etagOfRow(row, call.apiVersion, hasErased(row, texts))
  return replyWithTag(call, etag, render(withTexts(row, texts)), waitForMinPosition(call))
}
