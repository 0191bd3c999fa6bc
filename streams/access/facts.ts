import type { FactMap } from '../facts.ts'
import type { AccessEvent } from './events.ts'

/** Auditors read them at GET /audit-records; they are nobody else's business. */
export const accessFacts: FactMap<AccessEvent> = { AccessGranted: 'internal', AccessDenied: 'internal' }
