import type { FactMap } from '../facts.ts'
import type { SecretEvent } from './events.ts'

export const secretFacts: FactMap<SecretEvent> = { SecretMade: 'internal' }
