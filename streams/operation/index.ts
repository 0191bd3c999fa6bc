import { aggregateOf } from '../aggregate.ts'
import { codecOf } from '../codec.ts'
import { operationDecider } from './decider.ts'
import { operationEvents } from './events.ts'
import { operationFacts } from './facts.ts'

export const operation = aggregateOf({
  category: 'operation',
  prefix: 'op',
  decider: operationDecider,
  codec: codecOf(operationEvents),
  facts: operationFacts,
})

export { EXPORT_FORMATS, EXPORT_RESOURCES } from './events.ts'
export type * from './decider.ts'
export type * from './events.ts'
