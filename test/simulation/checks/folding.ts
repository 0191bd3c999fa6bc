import { type Projection, fold, type ResourceRow } from '../../../projections/projection.ts'
import { partsOf } from '../../../streams/aggregate.ts'
import type { AnyEvent } from '../../../streams/decider.ts'
import { aggregates, type Category, isCategory } from '../../../streams/index.ts'
import { decode } from '../../../src/feeds/decode.ts'
import type { StoredEvent } from '../../../src/ports.ts'
import type { SimulatedLog } from '../eventStore.ts'
import { UNKNOWN_EVENT_TYPE } from '../unknownEventType.ts'

/** The expected state and read-model row of a stream, folded from its events by the code of the service. */

export type AnyProjection = { readonly name: string; readonly category: string; readonly columns: object }

type Fold = { readonly initial: unknown; readonly evolve: (state: unknown, event: AnyEvent) => unknown }

const foldOf = (category: Category): Fold => aggregates[category].decider as never

export const isReadable = (events: readonly StoredEvent[]): boolean =>
  events.every(({ type }) => type !== UNKNOWN_EVENT_TYPE)

/** The state of a stream; undefined if this build cannot read all of its events. */
export const stateOf = (log: SimulatedLog, stream: string): unknown => {
  const { category } = partsOf(stream)
  const events = log.stream(stream)
  if (!isCategory(category) || !isReadable(events)) return undefined
  const { initial, evolve } = foldOf(category)
  return events.reduce((state, stored) => evolve(state, decode(stored).recorded.event), initial)
}

/** The row of a stream at this revision, or now; undefined if there is none or this build cannot read all of its events. */
export const rowOf = (
  log: SimulatedLog,
  stream: string,
  projection: AnyProjection,
  until?: bigint,
): ResourceRow | undefined => {
  const events = log.stream(stream).filter(({ revision }) => until === undefined || revision <= until)
  if (!isReadable(events)) return undefined
  let row: ResourceRow | undefined
  for (const stored of events) row = fold(projection as Projection<AnyEvent, ResourceRow>, row, decode(stored).recorded)
  return row
}
