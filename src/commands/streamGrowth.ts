import { type GrowthCode, type Rejection, reject, type StreamGrowth } from '../../streams/decider.ts'
import type { ExpectedRevision } from '../ports.ts'

/** The greatest length of a stream, by which commands are refused that a client could repeat without end. */

/** Bounds the reads that fold a whole stream. An object that a business works with has some dozens of changes. */
export const CHANGES_MAX = 1_000
/** Room for what comes after changes: an order with the most changes can still be invoiced. */
const RESERVE_SHARE = 0.2

type Growing = { readonly growth: Readonly<Record<string, StreamGrowth>> }

export const eventCountOf = ({ revision }: { readonly revision: ExpectedRevision }): number =>
  revision === 'no_stream' ? 0 : Number(revision) + 1

/** The refusal of a command that would extend its stream; undefined while the stream may grow. */
export const growthRefusal = (
  { changesMax }: { readonly changesMax: number },
  { growth }: Growing,
  before: { readonly revision: ExpectedRevision },
  { type }: { readonly type: string },
): Rejection<GrowthCode> | undefined => {
  const kind = growth[type]
  if (kind === 'unlimited') return undefined
  const max = kind === 'reserved' ? Math.floor(changesMax * (1 + RESERVE_SHARE)) : changesMax
  return eventCountOf(before) < max ? undefined : tooManyChanges(max)
}

export const tooManyChanges = (max: number): Rejection<GrowthCode> =>
  reject('too_many_changes', { events: BigInt(max) })
