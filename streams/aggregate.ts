import type { Codec } from './codec.ts'
import type { AnyCommand, AnyEvent, Decider } from './decider.ts'
import type { FactMap } from './facts.ts'
import type { Id, IdPrefix } from './ids.ts'

/** One kind of stream: its category, decider, codec and facts. */
export type Aggregate<State, Command extends AnyCommand, Event extends AnyEvent, Code extends string> = {
  /** The first part of a stream's name, `invoice` in `invoice-inv_…`. It contains no hyphen. */
  readonly category: string
  readonly prefix: IdPrefix
  readonly decider: Decider<State, Command, Event, Code>
  readonly codec: Codec<Event>
  readonly facts: FactMap<Event>
}

/** Infers the types of an aggregate from its parts. */
export const aggregateOf = <State, Command extends AnyCommand, Event extends AnyEvent, Code extends string>(
  aggregate: Aggregate<State, Command, Event, Code>,
): Aggregate<State, Command, Event, Code> => aggregate

export const streamOf = (aggregate: { readonly category: string }, id: Id<IdPrefix>): string =>
  `${aggregate.category}-${id}`

/** The reverse of `streamOf`: the category and the id that a stream's name is made of. */
export const partsOf = (stream: string): { category: string; id: string } => {
  const hyphen = stream.indexOf('-')
  return { category: stream.slice(0, hyphen), id: stream.slice(hyphen + 1) }
}
