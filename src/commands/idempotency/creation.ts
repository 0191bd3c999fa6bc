import { fold } from '../../../projections/projection.ts'
import type { IdempotencyRecord } from '../../../streams/idempotencyRecord.ts'
import type { Rejection } from '../../../streams/decider.ts'
import type { Recorded } from '../../../streams/envelope.ts'
import type { Id, IdPrefix } from '../../../streams/ids.ts'
import type { Entity, Kind } from '../entities.ts'
import { type Handled, type Ledger, type CommandRequest, handle } from '../commandHandler.ts'
import { idempotencyRecordIn, keyConflict, type KeyConflict } from './conflicts.ts'

/** The outcome of a creating command that may carry an idempotency key. */
export type CreationResult<R, Code extends string = string> =
  | { readonly kind: 'created' | 'replayed'; readonly row: R; readonly position: bigint }
  | {
      readonly kind: 'refused'
      readonly rejection: Rejection<Code>
      /** The correlation id of the request that was refused first, when the refusal is recorded. */
      readonly firstCorrelationId?: string
      readonly replayed?: true
    }
  | KeyConflict
  /** A concurrent request with the same key has not stored its idempotency record yet. */
  | { readonly kind: 'concurrent_request' }
  /** The resource exists, and its outcome is not known yet. */
  | { readonly kind: 'in_progress'; readonly id: string; readonly row: R; readonly position: bigint }

/** The same answer for a repetition of the request that stored the idempotency record. */
export const asReplay = <R, Code extends string>(answer: CreationResult<R, Code>): CreationResult<R, Code> => {
  if (answer.kind === 'created') return { ...answer, kind: 'replayed' }
  return answer.kind === 'refused' ? { ...answer, replayed: true } : answer
}

/** The row as of the first event that `until` accepts, that event included; undefined if none does. Reads no further. */
export const rowUntil = async <K extends Kind>(
  { projection }: Entity<K>,
  events: AsyncIterable<Recorded<K['event']>> | Iterable<Recorded<K['event']>>,
  until: (event: K['event']) => boolean = () => true,
): Promise<{ row: K['row']; last: Recorded<K['event']> } | undefined> => {
  if (projection === undefined) return undefined
  let row: K['row'] | undefined
  for await (const last of events) {
    row = fold(projection, row, last)
    if (until(last.event)) return row && { row, last }
  }
  return undefined
}

/**
 * Creates a resource with a single event. The append at "no stream" binds the key too, from which the id is derived.
 */
export const create = async <K extends Kind>(
  ledger: Ledger,
  entity: Entity<K>,
  id: Id<IdPrefix>,
  request: CommandRequest<K> & { readonly idempotencyRecord: IdempotencyRecord | null },
): Promise<CreationResult<K['row'], K['code'] | 'concurrent_modification'>> => {
  const handled: Handled<K> = await handle(ledger, entity, id, { ...request, load: 'assume_empty' })
  if (handled.ok && handled.row) return { kind: 'created', row: handled.row, position: handled.position }
  const replayed = request.idempotencyRecord && (await replay(ledger, entity, id, request.idempotencyRecord))
  if (replayed) return replayed
  if ('rejected' in handled) return { kind: 'refused', rejection: handled }
  return { kind: 'refused', rejection: { rejected: 'concurrent_modification' } }
}

/** The first result of this key, read from the stream; undefined when the key was never used. */
export const replay = async <K extends Kind>(
  ledger: Ledger,
  entity: Entity<K>,
  id: Id<IdPrefix>,
  idempotencyRecord: IdempotencyRecord,
): Promise<CreationResult<K['row'], K['code']> | undefined> => {
  const first = await rowUntil(entity, ledger.aggregates.events(entity, id, { limit: 1 }))
  if (first === undefined) return undefined
  const conflict = keyConflict(ledger, id, idempotencyRecord, idempotencyRecordIn([first.last]))
  return conflict ?? { kind: 'replayed', row: first.row, position: first.last.position }
}
