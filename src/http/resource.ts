import type { Query, PageRequest } from '../../projections/page.ts'
import type { ResourceRow } from '../../projections/projection.ts'
import type { AnyEvent, Rejection } from '../../streams/decider.ts'
import type { Id, IdPrefix } from '../../streams/ids.ts'
import type { Created } from '../commands/creation.ts'
import type { Entity } from '../commands/entities.ts'
import type { Handled } from '../commands/handle.ts'
import type { Loaded } from '../commands/loader.ts'
import { positionOf } from '../feeds/checkpoints.ts'
import type { Sql } from '../ports.ts'
import { etagOf, isKnown } from './conditional.ts'
import { isErrorCode, Problem } from './problem.ts'
import type { Call, Reply } from './route.ts'

/** How every resource is read, answered and listed: what the resources' own files would otherwise all repeat. */

type AnyCall = Call<unknown, unknown, unknown>
type Render<R> = (row: R) => object

/** Of another tenant, deleted, or never there: the caller cannot tell which. */
export const visible = <R extends ResourceRow>(call: AnyCall, row: R | undefined): R => {
  if (row === undefined || row.tenant_id !== call.principal.tenant || row.state === 'deleted')
    throw new Problem('resource_not_found')
  return row
}

const PRIVATE = { 'Cache-Control': 'private, no-cache', Vary: 'Authorization, API-Version' }

/** GET by id, from the stream itself: never older than what any writer was told. */
export const readOne = async <S, C, E extends AnyEvent, Code extends string, R extends ResourceRow>(
  call: AnyCall,
  entity: Entity<S, C, E, Code, R>,
  id: Id<IdPrefix>,
  render: Render<R>,
): Promise<Reply> => {
  const loaded = await call.ledger.loader.load(entity, id)
  const row = visible(call, loaded.row)
  const etag = etagOf(row.revision, call.apiVersion)
  const headers = { ETag: etag, ...PRIVATE }
  return isKnown(call.ifNoneMatch, etag) ? { status: 304, headers } : { status: 200, body: render(row), headers }
}

type Recorded = { readonly recordedFor?: string; readonly replayed?: true }

export const problemOf = (rejection: Rejection, { recordedFor, replayed }: Recorded = {}): Problem => {
  if (!isErrorCode(rejection.rejected)) throw new Error(`No problem is called ${rejection.rejected}.`)
  const told = Object.entries(rejection.params ?? {}).map(([name, value]) => `${name}: ${value}`)
  return new Problem(rejection.rejected, {
    ...(told.length > 0 ? { detail: `See ${told.join(', ')}.` } : {}),
    ...(recordedFor === undefined ? {} : { correlationId: recordedFor }),
    ...(replayed ? { headers: { 'Idempotent-Replayed': 'true' } } : {}),
  })
}

/** The If-Match of the call as a test of what was loaded; a resource that is not visible is a 404 before it is a 412. */
export const ifMatchOf =
  (call: AnyCall) =>
  (row: ResourceRow | undefined): boolean =>
    call.ifMatch?.(etagOf(visible(call, row).revision, call.apiVersion)) ?? true

/** The answer to a command on an existing resource: the resource as it is now. */
export const answer = <S, R extends ResourceRow>(
  call: AnyCall,
  handled: Handled<S, R, string>,
  render: Render<R>,
): Reply => {
  if (handled.ok && handled.row)
    return { status: 200, body: render(handled.row), headers: changedHeaders(call, handled) }
  if ('stale' in handled) throw preconditionFailed(call, handled.stale.row)
  if ('rejected' in handled) throw problemOf(handled)
  throw new Error('A command on a resource left no resource.')
}

export const changedHeaders = <S, R extends ResourceRow>(call: AnyCall, { row, position }: Loaded<S, R>) => ({
  ...(row ? { ETag: etagOf(row.revision, call.apiVersion) } : {}),
  'Ledger-Position': position.toString(),
})

const preconditionFailed = (call: AnyCall, row: ResourceRow | undefined): Problem =>
  new Problem('precondition_failed', {
    detail: 'Read the resource again and decide anew.',
    ...(row ? { headers: { ETag: etagOf(row.revision, call.apiVersion) } } : {}),
  })

/** The answer to a creating command, first time or replayed. */
export const answerCreated = <R extends ResourceRow>(
  call: AnyCall,
  created: Created<R>,
  path: string,
  render: Render<R>,
): Reply => {
  switch (created.kind) {
    case 'created':
    case 'replayed':
      return {
        status: 201,
        body: render(created.row),
        headers: {
          Location: `${path}/${created.row.id}`,
          ETag: etagOf(created.row.revision, call.apiVersion),
          'Ledger-Position': created.position.toString(),
          ...(created.kind === 'replayed' ? { 'Idempotent-Replayed': 'true' } : {}),
        },
      }
    case 'refused':
      throw problemOf(created.rejection, created)
    case 'key_reused':
      throw keyReused(created.pointers)
    case 'key_expired':
      throw new Problem('idempotency_key_expired', { headers: { Location: `${path}/${created.id}` } })
    case 'in_progress':
      throw new Problem('idempotency_in_progress')
  }
}

const keyReused = (pointers: readonly string[]): Problem =>
  new Problem('idempotency_key_reused', {
    detail: 'The first request with this key differs at the members listed.',
    errors: pointers.map(pointer => ({ pointer, code: 'differs', detail: 'Differs from the first request.' })),
  })

type ListOf<R extends ResourceRow> = {
  readonly name: string
  readonly page: (request: PageRequest) => Query<R>
  readonly render: Render<R>
}
type PageParameters = { readonly limit: number; readonly cursor?: string | undefined }

const run = <R extends ResourceRow>(sql: Sql, { text, values }: Query<R>): Promise<R[]> => sql<R>(text, values)

/** One page of a list, newest first, from the read model: eventually consistent, and it says as of when. */
export const readPage = async <R extends ResourceRow>(
  call: Call<unknown, PageParameters & Readonly<Record<string, string | number | undefined>>, unknown>,
  { name, page, render }: ListOf<R>,
): Promise<Reply> => {
  const { limit, cursor, ...filters } = call.query
  const { tenant } = call.principal
  const binding = { tenant, path: call.path, filters: definedOnly(filters) }
  const after = cursor === undefined ? undefined : (call.cursors.open(binding, cursor) as PageRequest['after'])
  const sql = call.database.sql
  // The position is read first: the rows are at least as new as it says.
  const position = await positionOf(sql, name)
  const request = { tenant, filters: filters as PageRequest['filters'], after, limit: limit + 1 }
  const rows = await run(sql, page(request))
  const items = rows.slice(0, limit)
  const last = items.at(-1)
  const next =
    rows.length > limit && last ? call.cursors.seal(binding, { created_at: last.created_at, id: last.id }) : null
  return {
    status: 200,
    body: {
      items: items.map(render),
      page: { next_cursor: next, has_more: next !== null, as_of_position: position.toString() },
    },
    headers: {
      ...PRIVATE,
      ...(next === null ? {} : { Link: `<${linkTo(call.path, { ...filters, limit, cursor: next })}>; rel="next"` }),
    },
  }
}

const definedOnly = (values: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))

const linkTo = (path: string, parameters: Readonly<Record<string, unknown>>): string => {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(definedOnly(parameters))) query.set(name, String(value))
  return `${path}?${query}`
}
