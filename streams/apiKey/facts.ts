import type { FactMap } from '../facts.ts'
import type { ApiKeyEvent } from './events.ts'

/** Internal events: auditors read them at GET /audit-records. */
export const apiKeyFacts: FactMap<ApiKeyEvent> = {
  ApiKeyIssued: 'internal',
  ApiKeyRotated: 'internal',
  ApiKeyRevoked: 'internal',
}
