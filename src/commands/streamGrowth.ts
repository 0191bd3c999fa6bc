import { type GrowthCode, isRejection, type Rejection, reject, type StreamGrowth } from '../../streams/decider.ts'
import type { ExpectedRevision } from '../ports.ts'
import type { Loaded } from './aggregateRepository.ts'
import type { Entity, Kind } from './entities.ts'

/** Bounds the reads that fold a whole stream. An object that a business works with has some dozens of changes. */
export const CHANGES_MAX = 1_000
/** Room for what comes after changes: an order with the most changes can still be invoiced. */
const RESERVE_SHARE = 0.2

type Limits = { readonly changesMax: number }
type Growing = { readonly growth: Readonly<Record<string, StreamGrowth>> }

export const eventCountOf = ({ revision }: { readonly revision: ExpectedRevision }): number =>
  revision === 'no_stream' ? 0 : Number(revision) + 1

/** The decision on a command in this state: the events to append, none if it was executed before, or its refusal. */
export const decisionOn = <K extends Kind>(
  limits: Limits,
  { aggregate }: Entity<K>,
  before: Pick<Loaded<K>, 'state' | 'revision'>,
  command: K['command'],
): readonly K['event'][] | Rejection<K['code'] | GrowthCode> => {
  const { decider } = aggregate
  const decided = decider.decide(command, before.state)
  if (isRejection(decided) || decided.length === 0) return decided
  return growthRefusal(limits, decider, before, command) ?? decided
}

/** The refusal of a command that would extend its stream; undefined while the stream may grow. */
const growthRefusal = (
  { changesMax }: Limits,
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
