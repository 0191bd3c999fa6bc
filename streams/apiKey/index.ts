import type { Aggregate } from '../aggregate.ts'
import { codecOf } from '../codec.ts'
import { type ApiKeyCode, type ApiKeyCommand, type ApiKeyState, apiKeyDecider, apiKeyGrowth } from './decider.ts'
import { type ApiKeyEvent, apiKeyEvents } from './events.ts'
import { apiKeyFacts } from './facts.ts'

/** API keys: the aggregate, and the public exports of this folder. */

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
