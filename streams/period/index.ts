import type { Aggregate } from '../aggregate.ts'
import { codecOf } from '../codec.ts'
import { type PeriodCode, type PeriodCommand, type PeriodState, periodDecider, periodGrowth } from './decider.ts'
import { type PeriodEvent, periodEvents } from './events.ts'
import { periodFacts } from './facts.ts'

export const period: Aggregate<PeriodState, PeriodCommand, PeriodEvent, PeriodCode> = {
  category: 'period',
  prefix: 'per',
  decider: periodDecider,
  growth: periodGrowth,
  codec: codecOf(periodEvents),
  facts: periodFacts,
}

export type * from './decider.ts'
export type * from './events.ts'
