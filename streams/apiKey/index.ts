import type { Aggregate } from '../aggregate.ts'
import { codecOf } from '../codec.ts'
import { type ApiKeyCode, type ApiKeyCommand, type ApiKeyState, apiKeyDecider, apiKeyGrowth } from './decider.ts'
import { type ApiKeyEvent, apiKeyEvents } from './events.ts'
import { apiKeyFacts } from './facts.ts'

export const apiKey: Aggregate<ApiKeyState, ApiKeyCommand, ApiKeyEvent, ApiKeyCode> = {
  category: 'apiKey',
  prefix: 'key',
  decider: apiKeyDecider,
  growth: apiKeyGrowth,
  codec: codecOf(apiKeyEvents),
  facts: apiKeyFacts,
}

export type * from './decider.ts'
export type * from './events.ts'
