import type { FactMap } from '../facts.ts'
import type { RefundEvent } from './events.ts'

/** Internal events: the payment's stream announces payment.refunded. */
export const refundFacts: FactMap<RefundEvent> = { RefundInitiated: 'internal' }
