import type { z } from 'zod'
import type { Call, Reply } from '../route.ts'

/** The pages of every list: where a page begins, the cursor of the next one, and its body and its Link header. */

/** The tenant, list and filters that a cursor is valid for; a request with others is refused. */
export type CursorBinding = object
type PagingCall = Pick<Call<unknown, unknown, unknown>, 'cursors' | 'path'>

/** The key after which the page begins; undefined for the first page. Throws Problem `cursor_invalid` or `cursor_expired`. */
export const keyInCursor = <K extends z.ZodType>(
  { cursors }: Pick<PagingCall, 'cursors'>,
  cursor: string | undefined,
  { binding, schema }: { readonly binding: CursorBinding; readonly schema: K },
): z.output<K> | undefined => (cursor === undefined ? undefined : schema.parse(cursors.open(binding, cursor)))

export type Page = {
  readonly items: readonly object[]
  readonly hasMore: boolean
  /** Null where a list ends; a list that grows at its end always has one. */
  readonly nextCursor: string | null
  readonly asOfPosition: string
}

/** The body of every page. */
export const pageBody = ({ items, hasMore, nextCursor, asOfPosition }: Page) => ({
  items,
  page: { next_cursor: nextCursor, has_more: hasMore, as_of_position: asOfPosition },
})

type LinkedPage = Page & {
  /** The query parameters of this page, without its cursor. */
  readonly parameters: Readonly<Record<string, unknown>>
}

/** The reply of a list endpoint, with the Link of the next page. `headers`: those of the list itself. */
export const pageReply = (
  { path }: PagingCall,
  page: LinkedPage,
  headers: Readonly<Record<string, string>> = {},
): Reply => {
  const next = page.hasMore
    ? { Link: `<${linkTo(path, { ...page.parameters, cursor: page.nextCursor })}>; rel="next"` }
    : {}
  return { status: 200, body: pageBody(page), headers: { ...headers, ...next } }
}

export const definedOnly = <V>(values: Readonly<Record<string, V>>): Record<string, Exclude<V, undefined>> =>
  Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [[name, value as never]])),
  )

const linkTo = (path: string, parameters: Readonly<Record<string, unknown>>): string => {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(definedOnly(parameters))) query.set(name, String(value))
  return `${path}?${query.toString()}`
}
