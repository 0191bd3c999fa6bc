import type { Aggregate } from '../aggregate.ts'
import { codecOf } from '../codec.ts'
import { type OrderCode, type OrderCommand, type OrderState, orderDecider, orderGrowth } from './decider.ts'
import { type OrderEvent, orderEvents } from './events.ts'
import { orderFacts } from './facts.ts'

export const order: Aggregate<OrderState, OrderCommand, OrderEvent, OrderCode> = {
  category: 'order',
  prefix: 'ord',
  decider: orderDecider,
  growth: orderGrowth,
  codec: codecOf(orderEvents),
  facts: orderFacts,
}

export type * from './decider.ts'
export type * from './events.ts'
