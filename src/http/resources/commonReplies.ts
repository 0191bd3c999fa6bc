import { fold, type ResourceRow } from '../../../projections/projection.ts'
import type { AnyEvent, Rejection } from '../../../streams/decider.ts'
import type { Recorded } from '../../../streams/envelope.ts'
import type { Id, IdPrefix } from '../../../streams/ids.ts'
import type { CreationResult } from '../../commands/idempotency/creation.ts'
import type { Entity, Kind } from '../../commands/entities.ts'
import { heapBytesOf, type Loaded } from '../../commands/aggregateRepository.ts'
import { hasErased, NO_TEXTS, type Texts, tokensOf, withTexts } from '../../personalTexts/personalTexts.ts'
import { etagOf, isNotModified } from '../request/entityTags.ts'
import { problemOfKeyConflict, problemOfRejection, Problem } from '../problems/problemCatalogue.ts'
import type { Reply } from '../route.ts'
import type { AnyLogCall, LogCall } from '../services.ts'

export type Render<R> = (row: R) => object

/** The row, if the caller may see it. Of another tenant, deleted, or never there: the same 404. */
export const visible = <R extends ResourceRow>(call: AnyLogCall, row: R | undefined): R => {
  if (row === undefined || row.tenant_id !== call.principal.tenant || row.state === 'deleted')
    throw new Problem('resource_not_found')
  return row
}

/** A resource of the caller's tenant. Throws Problem: 404, after the same reads for all that is not visible. */
export const visibleState = async <K extends Kind>(
  call: AnyLogCall,
  entity: Entity<K>,
  id: Id<IdPrefix>,
): Promise<Loaded<K> & { readonly row: K['row'] }> => {
  const loaded = await call.ledger.aggregates.loadOwn(entity, id, call.principal.tenant)
  const row = visible(call, loaded?.row)
  return { ...(loaded as Loaded<K>), row }
}

export const visibleRow = async <K extends Kind>(
  call: AnyLogCall,
  entity: Entity<K>,
  id: Id<IdPrefix>,
): Promise<K['row']> => (await visibleState(call, entity, id)).row

/** The caching headers of resources: private caches only, with revalidation before each use. */
export const PRIVATE_CACHING = { 'Cache-Control': 'private, no-cache', Vary: 'Authorization, X-API-Key, API-Version' }

/** The personal texts of the rows, which have tokens. No statement when there are none. Throws Unavailable. */
export const textsFor = async (call: AnyLogCall, rows: readonly object[]): Promise<Texts> => {
  const tokens = tokensOf(rows)
  return tokens.length === 0 ? NO_TEXTS : call.personalTexts.read(call.principal.tenant, tokens)
}

const etagFor = ({ apiVersion }: AnyLogCall, row: ResourceRow, texts: Texts): string =>
  etagOf(row.revision, apiVersion, { hasErased: hasErased(row, texts) })

type AsOf = { readonly as_of?: string | undefined }

/** The reply to GET by id, from the stream itself, so it is never older than a response to a writer. */
export const readOne = async <K extends Kind>(
  call: LogCall<unknown, AsOf | undefined, unknown>,
  entity: Entity<K>,
  id: Id<IdPrefix>,
  render: Render<K['row']>,
): Promise<Reply> => {
  const asOf = call.query?.as_of
  const row = asOf === undefined ? await visibleRow(call, entity, id) : await rowAsOf(call, entity, id, asOf)
  const texts = await textsFor(call, [row])
  return replyWithTag(call, etagFor(call, row, texts), render(withTexts(row, texts)))
}

/** The reply to a GET of what has this entity tag: without the body for a caller who has it. */
export const replyWithTag = (
  { ifNoneMatch }: Pick<AnyLogCall, 'ifNoneMatch'>,
  etag: string,
  body: object,
  others: Readonly<Record<string, string>> = {},
): Reply => {
  const headers = { ETag: etag, ...PRIVATE_CACHING, ...others }
  return isNotModified(ifNoneMatch, etag) ? { status: 304, headers } : { status: 200, body, headers }
}

/** Each page is read in a turn of its own, so a long history costs its own tenant time and nobody else. */
export const AS_OF_PAGE = 20
/** Large events are read two at a time. With pages of 20, the p99 of others beside test/soak/attacks/histories.ts was 30 % higher. */
const AS_OF_PAGE_BYTES = 128 * 1024

/** Pages grow while the events are small. */
const limitAfter = (page: readonly Recorded<AnyEvent>[]): number => {
  const largest = Math.max(...page.map(({ event }) => heapBytesOf(event.data)))
  return Math.max(1, Math.min(AS_OF_PAGE, 2 * page.length, Math.floor(AS_OF_PAGE_BYTES / largest)))
}

/** Folded from the first event, since an earlier state is stored nowhere. Throws Problem. */
const rowAsOf = async <K extends Kind>(call: AnyLogCall, entity: Entity<K>, id: Id<IdPrefix>, asOf: string) => {
  const { aggregates } = call.ledger
  const first = await aggregates.first(entity, id)
  if (first?.metadata.tenant !== call.principal.tenant) throw new Problem('resource_not_found')
  const untilMs = Date.parse(asOf)
  let row: K['row'] | undefined
  let limit = 2
  for (let from = 0n; ; ) {
    await call.nextTurn()
    const page = await Array.fromAsync(aggregates.events(entity, id, { from, limit }))
    // The first later event ends the loop, although clocks of other machines may have given earlier times to events
    // after it: the order of the stream is the order of the decisions.
    const later = page.findIndex(({ metadata }) => Date.parse(metadata.at) > untilMs)
    for (const recorded of later < 0 ? page : page.slice(0, later))
      row = entity.projection && fold(entity.projection, row, recorded)
    if (later >= 0 || page.length < limit) return visible(call, row)
    from += BigInt(page.length)
    limit = limitAfter(page)
  }
}

/**
 * The If-Match of the call as a test of the loaded row; a resource that is not visible is 404, before any 412. `texts`:
 * those of the row before the command. A token that came since then is of a text that was just stored.
 */
export const ifMatchOf =
  (call: AnyLogCall, texts = NO_TEXTS) =>
  (row: ResourceRow | undefined): boolean =>
    call.ifMatch?.(etagFor(call, visible(call, row), texts)) ?? true

/** The result of a command (`Handled`) on any kind of stream with rows of type R. */
type HandledRow<R> =
  | { readonly ok: true; readonly row: R | undefined; readonly position: bigint }
  | (Rejection & { readonly ok: false })
  | { readonly ok: false; readonly stale: { readonly row: R | undefined } }

/** What a command without If-Match did to its resource. Throws Problem: it was rejected. */
export const executed = <R>(handled: HandledRow<R>): { readonly row: R; readonly position: bigint } => {
  if ('rejected' in handled) throw problemOfRejection(handled)
  if (!handled.ok || handled.row === undefined) throw new Error('A command on a resource left no resource.')
  return { row: handled.row, position: handled.position }
}

export const replyToCommand = async <R extends ResourceRow>(
  call: AnyLogCall,
  handled: HandledRow<R>,
  render: Render<R>,
): Promise<Reply> => {
  if ('stale' in handled) throw await preconditionFailed(call, handled.stale.row)
  const { row, position } = executed(handled)
  const texts = await textsFor(call, [row])
  const headers = { ETag: etagFor(call, row, texts), 'Ledger-Position': position.toString() }
  return { status: 200, body: render(withTexts(row, texts)), headers }
}

const preconditionFailed = async (call: AnyLogCall, row: ResourceRow | undefined): Promise<Problem> => {
  const readAgain = 'Read the resource again before you decide whether to repeat the request.'
  if (row === undefined) return new Problem('precondition_failed', { detail: readAgain })
  const etag = etagFor(call, row, await textsFor(call, [row]))
  return new Problem('precondition_failed', {
    detail: `The current ETag is ${etag}. ${readAgain}`,
    headers: { ETag: etag },
  })
}

/** The reply to a creating command, for the first request and for replays of its key. */
export const replyToCreation = async <R extends ResourceRow>(
  call: AnyLogCall,
  created: CreationResult<R>,
  path: string,
  render: Render<R>,
): Promise<Reply> => {
  switch (created.kind) {
    case 'created':
    case 'replayed': {
      const texts = await textsFor(call, [created.row])
      return {
        status: 201,
        body: render(withTexts(created.row, texts)),
        headers: {
          Location: `${path}/${created.row.id}`,
          ETag: etagFor(call, created.row, texts),
          'Ledger-Position': created.position.toString(),
          ...(created.kind === 'replayed' ? { 'Idempotent-Replayed': 'true' } : {}),
        },
      }
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
