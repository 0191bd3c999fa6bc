import type { FactMap } from '../facts.ts'
import type { PeriodEvent } from './events.ts'

/** Internal events: the closing of a period concerns the tenant's books alone. */
export const periodFacts: FactMap<PeriodEvent> = { PeriodClosed: 'internal' }
