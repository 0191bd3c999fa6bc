import type { Aggregate } from '../aggregate.ts'
import { codecOf } from '../codec.ts'
import {
  type ManifestCode,
  type ManifestCommand,
  manifestDecider,
  manifestGrowth,
  type ManifestState,
} from './decider.ts'
import { type ManifestEvent, manifestEvents } from './events.ts'
import { manifestFacts } from './facts.ts'

export const manifest: Aggregate<ManifestState, ManifestCommand, ManifestEvent, ManifestCode> = {
  category: 'manifest',
  prefix: 'man',
  decider: manifestDecider,
  growth: manifestGrowth,
  codec: codecOf(manifestEvents),
  facts: manifestFacts,
}

export { nextPosition } from './decider.ts'
export type * from './decider.ts'
export type * from './events.ts'
