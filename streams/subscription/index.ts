import type { Aggregate } from '../aggregate.ts'
import { codecOf } from '../codec.ts'
import {
  type SubscriptionCode,
  type SubscriptionCommand,
  type SubscriptionState,
  subscriptionDecider,
  subscriptionGrowth,
} from './decider.ts'
import { type SubscriptionEvent, subscriptionEvents } from './events.ts'
import { subscriptionFacts } from './facts.ts'

export const subscription: Aggregate<SubscriptionState, SubscriptionCommand, SubscriptionEvent, SubscriptionCode> = {
  category: 'subscription',
  prefix: 'sub',
  decider: subscriptionDecider,
  growth: subscriptionGrowth,
  codec: codecOf(subscriptionEvents),
  facts: subscriptionFacts,
}

export type * from './decider.ts'
export type * from './events.ts'
