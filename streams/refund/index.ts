import type { Aggregate } from '../aggregate.ts'
import { codecOf } from '../codec.ts'
import { type RefundCode, type RefundCommand, type RefundState, refundDecider, refundGrowth } from './decider.ts'
import { type RefundEvent, refundEvents } from './events.ts'
import { refundFacts } from './facts.ts'

export const refund: Aggregate<RefundState, RefundCommand, RefundEvent, RefundCode> = {
  category: 'refund',
  prefix: 'rfd',
  decider: refundDecider,
  growth: refundGrowth,
  codec: codecOf(refundEvents),
  facts: refundFacts,
}

export type * from './decider.ts'
export type * from './events.ts'
