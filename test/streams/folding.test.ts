import { type InvoiceRow, invoices } from '../../projections/invoices/projection.ts'
import { fold } from '../../projections/projection.ts'
import type { ApiKeyEvent } from '../../streams/apiKey/index.ts'
import type { AnyEvent } from '../../streams/decider.ts'
import { aggregates } from '../../streams/index.ts'
import type { InvoiceEvent } from '../../streams/invoice/index.ts'
import type { PaymentEvent } from '../../streams/payment/index.ts'
import type { ReferenceEvent } from '../../streams/reference/index.ts'
import type { SubscriptionEvent } from '../../streams/subscription/index.ts'
import type { TenantEvent } from '../../streams/tenant/index.ts'
import { recordedAs } from '../projections/histories.ts'
import { expectLinearCost } from '../support/linearCost.ts'
import {
  applied,
  apiKeyIssued,
  claim,
  id,
  invoiceApproved,
  invoiceRaised,
  paymentInitiated,
  reserved,
  subscriptionCreated,
  terms,
} from './samples.ts'

/**
 * Folding a long stream must cost the same per event as folding a short one, for every state that keeps data of each
 * event.
 */

const EVENTS = { short: 1_000, long: 32_000 }
/**
 * The permitted ratio of the costs per event: above the effect of garbage collection, below that of a copy for each
 * event.
 */
const COST_PER_EVENT_RATIO_MAX = 8

const times = <E>(count: number, make: (n: number) => E): E[] => Array.from({ length: count }, (_, n) => make(n + 1))
const keyed = (n: number) => ({ ...claim, key_hash: `key ${n}` })

type Long = { readonly of: keyof typeof aggregates; readonly events: (count: number) => readonly AnyEvent[] }

const histories: Readonly<Record<string, Long>> = {
  'an invoice paid in many parts': {
    of: 'invoice',
    events: (count): InvoiceEvent[] => [invoiceRaised, invoiceApproved, ...times(count, n => applied(n, 1n))],
  },
  'an invoice whose payments settle late': {
    of: 'invoice',
    events: (count): InvoiceEvent[] => [
      invoiceRaised,
      ...times(count / 2, n => reserved(n, 1n)),
      ...times(count / 2, n => applied(n, 1n)),
    ],
  },
  'an invoice with many refunds': {
    of: 'invoice',
    events: (count): InvoiceEvent[] => [
      invoiceRaised,
      ...times(count, n => ({
        type: 'RefundApplied' as const,
        data: { payment_id: id('pay'), refund_id: id('rfd', n), amount: 1n },
      })),
    ],
  },
  'a payment with many refunds': {
    of: 'payment',
    events: (count): PaymentEvent[] => [
      paymentInitiated('immediate'),
      { type: 'PaymentSucceeded', data: terms('immediate') },
      ...times(count, n => ({
        type: 'RefundRefused' as const,
        data: { refund_id: id('rfd', n), code: 'payment_state_conflict' as const },
      })),
    ],
  },
  'a reference that was requested often': {
    of: 'reference',
    events: (count): ReferenceEvent[] =>
      times(count / 2, n => [
        { type: 'ReferenceRefused' as const, data: { payment_id: id('pay', n), held_by: id('pay') } },
        { type: 'ReferenceReleased' as const, data: { payment_id: id('pay', n) } },
      ]).flat(),
  },
  'a tenant with many subjects': {
    of: 'tenant',
    events: (count): TenantEvent[] =>
      times(count, n => ({ type: 'ScopeRevoked', data: { reason: '', subject: `subject ${n}`, scope: 'a' } })),
  },
  'a subject with many scopes': {
    of: 'tenant',
    events: (count): TenantEvent[] =>
      times(count, n => ({ type: 'ScopeRevoked', data: { reason: '', subject: 'one', scope: `scope ${n}` } })),
  },
  'an API key that was rotated often': {
    of: 'apiKey',
    events: (count): ApiKeyEvent[] => [
      apiKeyIssued,
      ...times(count, n => ({
        type: 'ApiKeyRotated' as const,
        data: { nonce: '', hash: '', expires_at: claim.expires_at, previous_until: claim.expires_at, claim: keyed(n) },
      })),
    ],
  },
  'a subscription that was replayed often': {
    of: 'subscription',
    events: (count): SubscriptionEvent[] => [
      subscriptionCreated,
      ...times(count, n => ({
        type: 'SubscriptionReplayed' as const,
        data: { replay: n, from_position: 0n, from_time: null, to_position: 1n, claim: keyed(n) },
      })),
    ],
  },
}

describe('folding a long stream costs as much per event as folding a short one:', () => {
  for (const [name, { of, events }] of Object.entries(histories))
    it(name, async () => {
      const { initial, evolve } = aggregates[of].decider as {
        initial: object
        evolve: (s: object, e: object) => object
      }
      const folding = (count: number) => {
        const history = events(count)
        return () => history.reduce<object>(evolve, initial)
      }
      await expectLinearCost(folding, EVENTS, COST_PER_EVENT_RATIO_MAX)
    })

  it('the row of an invoice whose payments settle late', async () => {
    const folding = (count: number) => {
      const { events } = histories['an invoice whose payments settle late'] ?? { events: () => [] }
      const history = recordedAs(id('inv'), events(count) as InvoiceEvent[])
      return () => history.reduce<InvoiceRow | undefined>((row, event) => fold(invoices, row, event), undefined)
    }
    await expectLinearCost(folding, EVENTS, COST_PER_EVENT_RATIO_MAX)
  })
})
