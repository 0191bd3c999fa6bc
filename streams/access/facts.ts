import type { FactMap } from '../facts.ts'
import type { AccessEvent } from './events.ts'

/** Internal events: auditors read them at GET /audit-records. */
export const accessFacts: FactMap<AccessEvent> = { AccessGranted: 'internal', AccessDenied: 'internal' }
