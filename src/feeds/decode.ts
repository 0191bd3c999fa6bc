import { partsOf } from '../../streams/aggregate.ts'
import type { AnyEvent } from '../../streams/decider.ts'
import type { Recorded } from '../../streams/envelope.ts'
import { aggregates, type Category, isCategory } from '../../streams/index.ts'
import { recordedOf } from '../lib/storedEvents.ts'
import type { StoredEvent } from '../ports.ts'

export type Decoded = { readonly category: Category; readonly recorded: Recorded<AnyEvent> }

/** Decodes a stored event of any aggregate. Throws for a stream that no aggregate of this build owns. */
export const decode = (stored: StoredEvent): Decoded => {
  const { category } = partsOf(stored.stream)
  if (!isCategory(category)) throw new Error(`No aggregate owns the stream ${stored.stream}.`)
  return { category, recorded: recordedOf<AnyEvent>(aggregates[category].codec, stored) }
}
