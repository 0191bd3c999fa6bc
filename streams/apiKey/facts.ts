import type { FactMap } from '../facts.ts'
import type { ApiKeyEvent } from './events.ts'

/** Who may read is no fact about money: auditors find it at GET /audit-records. */
export const apiKeyFacts: FactMap<ApiKeyEvent> = {
  ApiKeyIssued: 'internal',
  ApiKeyRotated: 'internal',
  ApiKeyRevoked: 'internal',
}
