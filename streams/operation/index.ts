import type { Aggregate } from '../aggregate.ts'
import { codecOf } from '../codec.ts'
import {
  type OperationCode,
  type OperationCommand,
  type OperationState,
  operationDecider,
  operationGrowth,
} from './decider.ts'
import { type OperationEvent, operationEvents } from './events.ts'
import { operationFacts } from './facts.ts'

export const operation: Aggregate<OperationState, OperationCommand, OperationEvent, OperationCode> = {
  category: 'operation',
  prefix: 'op',
  decider: operationDecider,
  growth: operationGrowth,
  codec: codecOf(operationEvents),
  facts: operationFacts,
}

export { EXPORT_FORMATS, EXPORT_RESOURCES } from './events.ts'
export type * from './decider.ts'
export type * from './events.ts'
