import { fold, type ResourceRow } from '../../../projections/projection.ts'
import type { Rejection } from '../../../streams/decider.ts'
import type { Id, IdPrefix } from '../../../streams/ids.ts'
import type { CreationResult } from '../../commands/idempotentCreation.ts'
import type { Entity, Kind } from '../../commands/entities.ts'
import type { Loaded, AggregateRepository } from '../../commands/aggregateRepository.ts'
import { etagOf, isNotModified } from '../request/conditional.ts'
import { problemOfKeyConflict, problemOfRejection } from '../response/rejectionDetails.ts'
import { Problem } from '../response/problemCatalogue.ts'
import type { Call, Reply } from '../route.ts'

/** The replies that all resources share: reads by id, and replies to commands. */

type AnyCall = Call<unknown, unknown, unknown>
export type Render<R> = (row: R) => object

/** The row, if the caller may see it. A resource of another tenant, a deleted one and one that never existed are the same 404. */
export const visible = <R extends ResourceRow>(call: AnyCall, row: R | undefined): R => {
  if (row === undefined || row.tenant_id !== call.principal.tenant || row.state === 'deleted')
    throw new Problem('resource_not_found')
  return row
}

/** The caching headers of resources: private caches only, with revalidation before each use. */
export const PRIVATE_CACHING = { 'Cache-Control': 'private, no-cache', Vary: 'Authorization, X-API-Key, API-Version' }

type AsOf = { readonly as_of?: string | undefined }

/**
 * The reply to GET by id, from the stream itself, so that it is never older than a response to any writer. With `as_of`, the
 * state that the events decided up to that time lead to.
 */
export const readOne = async <K extends Kind>(
  call: Call<unknown, AsOf | undefined, unknown>,
  entity: Entity<K>,
  id: Id<IdPrefix>,
  render: Render<K['row']>,
): Promise<Reply> => {
  const asOf = call.query?.as_of
  const { aggregates } = call.ledger
  const row = visible(
    call,
    asOf === undefined ? (await aggregates.load(entity, id)).row : await rowAsOf(aggregates, entity, id, asOf),
  )
  const etag = etagOf(row.revision, call.apiVersion)
  const headers = { ETag: etag, ...PRIVATE_CACHING }
  return isNotModified(call.ifNoneMatch, etag) ? { status: 304, headers } : { status: 200, body: render(row), headers }
}

const rowAsOf = async <K extends Kind>(
  aggregates: AggregateRepository,
  { aggregate, projection }: Entity<K>,
  id: Id<IdPrefix>,
  asOf: string,
): Promise<K['row'] | undefined> => {
  const until = Date.parse(asOf)
  let row: K['row'] | undefined
  for (const recorded of await aggregates.history({ aggregate }, id)) {
    // The first later event ends the loop, although clocks of other machines may have given earlier times to events after
    // it: the order of the stream is the order of the decisions.
    if (projection === undefined || Date.parse(recorded.metadata.at) > until) break
    row = fold(projection, row, recorded)
  }
  return row
}

/** The If-Match of the call as a test of the loaded row. A resource that is not visible is 404, before any 412. */
export const ifMatchOf =
  (call: AnyCall) =>
  (row: ResourceRow | undefined): boolean =>
    call.ifMatch?.(etagOf(visible(call, row).revision, call.apiVersion)) ?? true

/** The result of a command (`Handled`) on any kind of stream with rows of type R. */
type HandledRow<R> =
  | { readonly ok: true; readonly row: R | undefined; readonly position: bigint }
  | (Rejection & { readonly ok: false })
  | { readonly ok: false; readonly stale: { readonly row: R | undefined } }

/** The reply to a command on an existing resource: the resource after the command. */
export const replyToCommand = <R extends ResourceRow>(
  call: AnyCall,
  handled: HandledRow<R>,
  render: Render<R>,
): Reply => {
  if (handled.ok && handled.row)
    return { status: 200, body: render(handled.row), headers: changedHeaders(call, handled) }
  if ('stale' in handled) throw preconditionFailed(call, handled.stale.row)
  if ('rejected' in handled) throw problemOfRejection(handled)
  throw new Error('A command on a resource left no resource.')
}

export const changedHeaders = (call: AnyCall, { row, position }: Pick<Loaded<Kind>, 'row' | 'position'>) => ({
  ...(row ? { ETag: etagOf(row.revision, call.apiVersion) } : {}),
  'Ledger-Position': position.toString(),
})

const preconditionFailed = (call: AnyCall, row: ResourceRow | undefined): Problem =>
  new Problem('precondition_failed', {
    detail: 'Read the resource again and decide anew.',
    ...(row ? { headers: { ETag: etagOf(row.revision, call.apiVersion) } } : {}),
  })

/** The reply to a creating command, for the first request and for replays of its key. */
export const replyToCreation = <R extends ResourceRow>(
  call: AnyCall,
  created: CreationResult<R>,
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
      throw problemOfRejection(created.rejection, created)
    case 'key_reused':
    case 'key_expired':
      throw problemOfKeyConflict(created, path)
    case 'concurrent_request':
    case 'in_progress':
      throw new Problem('idempotency_in_progress')
  }
}
