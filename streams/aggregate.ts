import type { Codec } from './codec.ts'
import type { AnyEvent, Decider, StreamGrowth } from './decider.ts'
import type { FactMap } from './facts.ts'
import type { Id, IdPrefix } from './ids.ts'

/** The form of an aggregate, and the names of its streams. */

/** One kind of stream: its category, decider, codec and facts. */
export type Aggregate<State, Command extends { readonly type: string }, Event extends AnyEvent, Code extends string> = {
  /** The first part of a stream's name, `invoice` in `invoice-inv_…`. It contains no hyphen. */
  readonly category: string
  readonly prefix: IdPrefix
  readonly decider: Decider<State, Command, Event, Code>
  readonly growth: Readonly<Record<Command['type'], StreamGrowth>>
  readonly codec: Codec<Event>
  readonly facts: FactMap<Event>
}

export const streamOf = (aggregate: { readonly category: string }, id: Id<IdPrefix>): string =>
  `${aggregate.category}-${id}`

/** The reverse of `streamOf`: the category and the id that a stream's name is made of. */
export const partsOf = (stream: string): { category: string; id: string } => {
  const hyphen = stream.indexOf('-')
  return { category: stream.slice(0, hyphen), id: stream.slice(hyphen + 1) }
}
