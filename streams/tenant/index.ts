import { aggregateOf } from '../aggregate.ts'
import { codecOf } from '../codec.ts'
import { tenantDecider } from './decider.ts'
import { tenantEvents } from './events.ts'
import { tenantFacts } from './facts.ts'

export const tenant = aggregateOf({
  category: 'tenant',
  prefix: 'ten',
  decider: tenantDecider,
  codec: codecOf(tenantEvents),
  facts: tenantFacts,
})

export type * from './decider.ts'
export type * from './events.ts'
