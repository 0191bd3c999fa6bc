import type { FactMap } from '../facts.ts'
import type { RefundEvent } from './events.ts'

/** The fact is the payment's: payment.refunded. */
export const refundFacts: FactMap<RefundEvent> = { RefundInitiated: 'internal' }
