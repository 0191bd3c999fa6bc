import { aggregateOf } from '../aggregate.ts'
import { codecOf } from '../codec.ts'
import { apiKeyDecider } from './decider.ts'
import { apiKeyEvents } from './events.ts'
import { apiKeyFacts } from './facts.ts'

export const apiKey = aggregateOf({
  category: 'apiKey',
  prefix: 'key',
  decider: apiKeyDecider,
  codec: codecOf(apiKeyEvents),
  facts: apiKeyFacts,
})

export type * from './decider.ts'
export type * from './events.ts'
