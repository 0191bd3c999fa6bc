import type { FactMap } from '../facts.ts'
import type { SecretEvent } from './events.ts'

/** Internal event: the secret is never published. */

export const secretFacts: FactMap<SecretEvent> = { SecretMade: 'internal' }
