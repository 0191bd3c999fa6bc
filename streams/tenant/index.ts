import type { Aggregate } from '../aggregate.ts'
import { codecOf } from '../codec.ts'
import { type TenantCode, type TenantCommand, type TenantState, tenantDecider, tenantGrowth } from './decider.ts'
import { type TenantEvent, tenantEvents } from './events.ts'
import { tenantFacts } from './facts.ts'

export const tenant: Aggregate<TenantState, TenantCommand, TenantEvent, TenantCode> = {
  category: 'tenant',
  prefix: 'ten',
  decider: tenantDecider,
  growth: tenantGrowth,
  codec: codecOf(tenantEvents),
  facts: tenantFacts,
}

export type * from './decider.ts'
export type * from './events.ts'
