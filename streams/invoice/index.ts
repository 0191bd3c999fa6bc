import { aggregateOf } from '../aggregate.ts'
import { codecOf } from '../codec.ts'
import { invoiceDecider } from './decider.ts'
import { invoiceEvents } from './events.ts'
import { invoiceFacts } from './facts.ts'

export const invoice = aggregateOf({
  category: 'invoice',
  prefix: 'inv',
  decider: invoiceDecider,
  codec: codecOf(invoiceEvents),
  facts: invoiceFacts,
})

export type * from './decider.ts'
export { refusalOf, stillDue } from './decider.ts'
export type * from './events.ts'
