import { z } from 'zod'
import type { Reply } from '../route.ts'
import type { AnyCall } from '../services.ts'
import { timeParameter } from './commonSchemas.ts'

const PAGE_LIMIT_MAX = 100
const PAGE_LIMIT = 25

/** A whole number: digits in the URL, `type: integer` in openapi.json. */
const numberQuery = ({ minimum, maximum, usual }: { minimum: number; maximum: number; usual: number }) =>
  z
    .string()
    .regex(/^\d{1,9}$/, `Must be a whole number from ${minimum} to ${maximum}.`)
    .transform(Number)
    .pipe(z.int().min(minimum).max(maximum))
    .default(usual)
    .meta({ override: ({ jsonSchema }) => integerOf(jsonSchema, { minimum, maximum, default: usual }) })

const integerOf = (schema: object, integer: Readonly<Record<string, number>>): void => {
  for (const name of Object.keys(schema)) Reflect.deleteProperty(schema, name)
  Object.assign(schema, { type: 'integer', ...integer })
}

export const pageQuery = {
  limit: numberQuery({ minimum: 1, maximum: PAGE_LIMIT_MAX, usual: PAGE_LIMIT }),
  cursor: z.string().min(1).max(1_024).optional(),
}

export const createdQuery = { created_after: timeParameter.optional(), created_before: timeParameter.optional() }

export const pageSchema = <T extends z.ZodType>(item: T) =>
  z.object({
    items: z.array(item),
    page: z.object({
      next_cursor: z.string().nullable(),
      has_more: z.boolean(),
      as_of_position: z.string().meta({ description: 'The position of the log up to which the list is complete.' }),
    }),
  })

/** The declared response and errors of every list. */
export const listOf = <T extends z.ZodType>(item: T) =>
  ({
    isList: true,
    order: ['-created_at', '-id'],
    responses: {
      200: { description: 'A page of the list.', schema: pageSchema(item), headers: ['Link', 'Preference-Applied'] },
    },
    errors: ['cursor_invalid', 'cursor_expired', 'projection_behind'],
  }) as const

/** The same for a list that no read model is behind. */
export const listFromLog = <T extends z.ZodType>(item: T) =>
  ({
    responses: { 200: { description: 'A page of the list.', schema: pageSchema(item), headers: ['Link'] } },
    errors: ['cursor_invalid', 'cursor_expired'],
  }) as const

/** The tenant, list and filters that a cursor is valid for; a request with others is refused. */
export type CursorBinding = object
type PagingCall = Pick<AnyCall, 'cursors' | 'path'>

/** The key after which the page begins; undefined for the first. Throws Problem. */
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

export const pageBody = ({ items, hasMore, nextCursor, asOfPosition }: Page) => ({
  items,
  page: { next_cursor: nextCursor, has_more: hasMore, as_of_position: asOfPosition },
})

type LinkedPage = Pick<Page, 'items' | 'asOfPosition'> & {
  /** The key after which the next page begins; undefined where the list ends. */
  readonly next: object | undefined
  /** By default whether there is `next`. */
  readonly hasMore?: boolean
  readonly binding: CursorBinding
  /** The query parameters of this page, without its cursor. */
  readonly parameters: Readonly<Record<string, unknown>>
}

/** The reply of a list endpoint, with the Link of the next page. `headers`: those of the list itself. */
export const pageReply = (
  { path, cursors }: PagingCall,
  { items, next, hasMore = next !== undefined, binding, asOfPosition, parameters }: LinkedPage,
  headers: Readonly<Record<string, string>> = {},
): Reply => {
  const nextCursor = next === undefined ? null : cursors.encrypt(binding, next)
  const link = hasMore ? { Link: `<${linkTo(path, { ...parameters, cursor: nextCursor })}>; rel="next"` } : {}
  return { status: 200, body: pageBody({ items, hasMore, nextCursor, asOfPosition }), headers: { ...headers, ...link } }
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
