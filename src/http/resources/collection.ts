import { z } from 'zod'
import {
  type ListedRow,
  type PageRequest,
  type PageRow,
  pageOfRows,
  type Query,
} from '../../../projections/listQueries.ts'
import { positionOf } from '../../feeds/checkpoints.ts'
import { Problem } from '../problems/problemCatalogue.ts'
import { definedOnly, keyInCursor, pageReply } from './paging.ts'
import { withTexts } from '../../personalTexts/personalTexts.ts'
import { PRIVATE_CACHING, textsFor } from './commonReplies.ts'
import type { Reply } from '../route.ts'
import type { AnyCall, Call } from '../services.ts'

/** Lists that come from read models, and the wait until a read model has reached a position. */

type ListOf<R extends ListedRow> = {
  readonly name: string
  readonly page: (request: PageRequest) => Query<PageRow<R>>
  readonly render: (row: R) => object
}
type PageParameters = { readonly limit: number; readonly cursor?: string | undefined }

const pageKeySchema = z.object({ created_at: z.string(), id: z.string() })

/** One page of a list, newest first, with the position of the log that its read model has reached. */
export const readPage = async <R extends ListedRow>(
  call: Call<unknown, PageParameters & Readonly<Record<string, string | number | undefined>>, unknown>,
  { name, page, render }: ListOf<R>,
): Promise<Reply> => {
  const { limit, cursor, ...filters } = call.query
  const { tenant } = call.principal
  const binding = { tenant, path: call.path, filters: definedOnly(filters) }
  const after = keyInCursor(call, cursor, { binding, schema: pageKeySchema })
  // The position is read before the rows, so the rows are at least as new.
  const position = await reachedPosition(call, name)
  const request = { tenant, filters: filters as PageRequest['filters'], after, limit: limit + 1 }
  const { text, values } = page(request)
  const rows = await call.lists.sql<PageRow<R>>(text, values)
  const { items, next } = pageOfRows(rows, limit, ({ created_at, id }: R) => ({ created_at, id }))
  const texts = await textsFor(call, items)
  return pageReply(
    call,
    {
      items: items.map(row => render(withTexts(row, texts))),
      ...{ next, binding, asOfPosition: position.toString(), parameters: { ...filters, limit } },
    },
    { ...PRIVATE_CACHING, ...waitForMinPosition(call) },
  )
}

/** The header of a list that was to reach If-Min-Position. */
export const waitForMinPosition = (call: AnyCall): Record<string, string> =>
  call.minPosition === undefined ? {} : waitApplied(call)

/** Preference-Applied with the granted wait, which may be shorter than the preferred one. */
export const waitApplied = ({ prefer: { waitMs } }: AnyCall): Record<string, string> =>
  waitMs === undefined ? {} : { 'Preference-Applied': `wait=${waitMs / 1_000}` }

/**
 * The position of the read model: at least `target`, after a wait as long as the caller prefers. Throws Problem when
 * that is not long enough, or the caller has too many waiting requests.
 */
export const reachedPosition = async (call: AnyCall, name: string, target = call.minPosition): Promise<bigint> => {
  const { sql } = call.database
  const current = await positionOf(sql, name)
  if (target === undefined || current >= target) return current
  const position = (await hasWaited(call, name, target)) ? await positionOf(sql, name) : current
  if (position >= target) return position
  throw new Problem('projection_behind', {
    detail: `The list is complete up to position ${position}. Try again shortly, or send Prefer: wait=5.`,
  })
}

const hasWaited = async (
  { prefer: { waitMs = 0 }, concurrencyLimits, tail, principal }: AnyCall,
  name: string,
  target: bigint,
): Promise<boolean> => {
  if (waitMs === 0) return false
  const release = await concurrencyLimits.take('waits', principal)
  try {
    await tail.waitUntilReached(name, target, waitMs)
    return true
  } finally {
    release()
  }
}
