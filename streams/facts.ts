import type { AnyEvent } from './decider.ts'
import type { Recorded } from './envelope.ts'

/** The facts that leave the house. Their meaning is part of the contract: a change of it is a new version. */
export const FACT_TYPES = [
  'order.created',
  'order.cancelled',
  'invoice.approved',
  'invoice.paid',
  'invoice.voided',
  'payment.succeeded',
  'payment.failed',
  'payment.refunded',
  'export.completed',
] as const
export type FactType = (typeof FACT_TYPES)[number]

type FactValue = string | number | null | { readonly [key: string]: FactValue }
/** JSON, amounts in minor units as of the event, always with the currency's exponent beside them. */
export type FactData = { readonly [key: string]: FactValue }
export type Fact = { readonly type: FactType; readonly version: number; readonly data: FactData }

/** Total: an event that is nobody else's business says so. */
export type FactMap<E extends AnyEvent> = {
  readonly [T in E['type']]: 'internal' | ((recorded: Recorded<Extract<E, { type: T }>>) => Fact)
}

export const factOf = <E extends AnyEvent>(facts: FactMap<E>, recorded: Recorded<E>): Fact | undefined => {
  const make = facts[recorded.event.type as E['type']]
  return make === 'internal' ? undefined : (make as (recorded: Recorded<E>) => Fact)(recorded)
}

/** CloudEvents 1.0 in its JSON form, with the extensions of contract.md §9. */
export type CloudEvent = {
  readonly specversion: '1.0'
  readonly id: string
  readonly source: string
  readonly type: FactType
  readonly subject: string
  readonly time: string
  readonly datacontenttype: 'application/json'
  readonly dataschema: string
  readonly partitionkey: string
  readonly sequence: string
  readonly correlationid: string
  readonly causationid: string
  readonly tenantid: string
  readonly traceparent?: string
  readonly data: FactData
}

export const SOURCE = '/payment-ledger'
/** Long enough for every unsigned 64-bit revision, so that sequences sort as text. */
const SEQUENCE_DIGITS = 20

export const cloudEventOf = <E extends AnyEvent>(recorded: Recorded<E>, fact: Fact): CloudEvent => ({
  specversion: '1.0',
  id: recorded.eventId,
  source: SOURCE,
  type: fact.type,
  subject: recorded.id,
  time: recorded.metadata.at,
  datacontenttype: 'application/json',
  dataschema: `/schemas/${fact.type}.v${fact.version}.json`,
  partitionkey: recorded.id,
  sequence: recorded.revision.toString().padStart(SEQUENCE_DIGITS, '0'),
  correlationid: recorded.metadata.correlationId,
  causationid: recorded.metadata.causationId,
  tenantid: recorded.metadata.tenant,
  ...(recorded.metadata.traceparent === undefined ? {} : { traceparent: recorded.metadata.traceparent }),
  data: fact.data,
})
