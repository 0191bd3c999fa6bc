import { expect } from 'chai'
import fc from 'fast-check'
import { projections } from '../../projections/index.ts'
import { fold, Gap, type Projection, type ResourceRow } from '../../projections/projection.ts'
import type { SubscriptionRow } from '../../projections/subscriptions/projection.ts'
import type { AnyCommand, AnyEvent, Decider } from '../../streams/decider.ts'
import type { Recorded } from '../../streams/envelope.ts'
import { aggregates } from '../../streams/index.ts'
import { apiKey } from '../../streams/apiKey/index.ts'
import { invoice } from '../../streams/invoice/index.ts'
import { operation } from '../../streams/operation/index.ts'
import { order } from '../../streams/order/index.ts'
import { payment } from '../../streams/payment/index.ts'
import { subscription } from '../../streams/subscription/index.ts'
import {
  anyApiKeyCommand,
  anyInvoiceCommand,
  anyOperationCommand,
  anyOrderCommand,
  anyPaymentCommand,
  anySubscriptionCommand,
} from '../streams/arbitraries.ts'
import {
  createOrder,
  id,
  initiatePayment,
  issueApiKey,
  raiseInvoice,
  requestExport,
  createSubscription,
} from '../streams/samples.ts'
import { decided, metadataAt, recordedAs } from './histories.ts'

type AnyProjection = Projection<AnyEvent, ResourceRow>
type Folding<S> = { readonly histories: fc.Arbitrary<{ recorded: Recorded<AnyEvent>[]; states: S[] }> }

const histories = <S, C extends AnyCommand, E extends AnyEvent>(
  decider: Decider<S, C, E, string>,
  first: C,
  anyCommand: fc.Arbitrary<C>,
  of: Parameters<typeof recordedAs>[0],
): Folding<S>['histories'] =>
  fc.array(anyCommand, { maxLength: 30 }).map(commands => {
    const { events, states } = decided(decider, [first, ...commands])
    return { recorded: recordedAs<AnyEvent>(of, events), states }
  })

const foldAll = (projection: AnyProjection, recorded: readonly Recorded<AnyEvent>[], from?: ResourceRow) =>
  recorded.reduce<ResourceRow | undefined>((row, event) => fold(projection, row, event), from)

/** Properties of the rows of any projection. */
const commonProperties = <S>(projection: AnyProjection, { histories: anyHistory }: Folding<S>): void => {
  it('are the same whether the events arrive at once, one by one, or in any batches', () =>
    fc.assert(
      fc.property(anyHistory, fc.array(fc.nat({ max: 30 })), ({ recorded }, cuts) => {
        const edges = [0, ...cuts.filter(cut => cut < recorded.length).toSorted((a, b) => a - b), recorded.length]
        const batches = edges.slice(1).map((edge, n) => recorded.slice(edges[n], edge))
        const row = batches.reduce<ResourceRow | undefined>(
          (from, batch) => foldAll(projection, batch, from),
          undefined,
        )
        expect(row).to.deep.equal(foldAll(projection, recorded))
      }),
    ))

  it('do not change when events are repeated', () =>
    fc.assert(
      fc.property(anyHistory, fc.nat(), ({ recorded }, from) => {
        const row = foldAll(projection, recorded)
        expect(foldAll(projection, recorded.slice(from % recorded.length), row)).to.equal(row)
      }),
    ))

  it('have the revision and the time of their newest event, and otherwise constant common columns', () =>
    fc.assert(
      fc.property(anyHistory, ({ recorded }) => {
        const { tenant, subject, at } = metadataAt(0)
        let row: ResourceRow | undefined
        for (const event of recorded) {
          row = fold(projection, row, event)
          expect(row).to.include({ revision: event.revision, updated_at: event.metadata.at, id: event.id })
          expect(row).to.include({ tenant_id: tenant, created_by: subject, created_at: at })
        }
      }),
    ))

  it('have exactly the columns of their table', () =>
    fc.assert(
      fc.property(anyHistory, ({ recorded }) => {
        for (let count = 1; count <= recorded.length; count += 1) {
          const row = foldAll(projection, recorded.slice(0, count)) ?? {}
          expect(Object.keys(row).toSorted()).to.deep.equal(Object.keys(projection.columns).toSorted())
        }
      }),
      { numRuns: 30 },
    ))

  it('refuse an event after a gap, at the beginning too', () =>
    fc.assert(
      fc.property(anyHistory, fc.nat(), ({ recorded }, number) => {
        fc.pre(recorded.length > 1)
        const seen = number % (recorded.length - 1)
        const later = recorded[seen + 1] ?? expect.fail()
        expect(() => fold(projection, foldAll(projection, recorded.slice(0, seen)), later)).to.throw(
          Gap,
          `${projection.name} expected revision ${seen} of ${later.id} and got ${seen + 1}.`,
        )
      }),
    ))

  it('refuse a stream that begins with another event', () => {
    const type = Object.keys(projection.on).find(name => name !== projection.first)
    const [other] = recordedAs(id('ord'), [{ type: type ?? '', data: {} }])
    expect(() => other && fold(projection, undefined, other)).to.throw(`does not begin with ${projection.first}`)
  })
}

const orders = histories(order.decider, createOrder, anyOrderCommand, id('ord'))
const invoices = histories(invoice.decider, raiseInvoice, anyInvoiceCommand, id('inv'))
const payments = histories(payment.decider, initiatePayment('deferred'), anyPaymentCommand, id('pay'))
const operations = histories(operation.decider, requestExport, anyOperationCommand, id('op'))
const keys = histories(apiKey.decider, issueApiKey, anyApiKeyCommand, id('key'))
const subscribed = histories(subscription.decider, createSubscription, anySubscriptionCommand, id('sub'))

describe('the rows of', () => {
  for (const [name, projection] of Object.entries(projections))
    it(`${name} handle every event of their aggregate, and no other`, () => {
      const types: readonly string[] = aggregates[projection.category as keyof typeof aggregates].codec.types
      expect(Object.keys(projection.on).toSorted()).to.deep.equal(types.toSorted())
    })

  describe('orders', () => {
    commonProperties(projections.orders as never, { histories: orders })

    it('agree with the state of the decider', () =>
      fc.assert(
        fc.property(orders, ({ recorded, states }) => {
          for (const [n, state] of states.entries()) {
            if (state.status === 'none') continue
            const row = foldAll(projections.orders as never, recorded.slice(0, n + 1))
            const { status, total, customer_reference, description, metadata } = state
            expect(row).to.deep.include({
              state: status,
              total_amount: total,
              customer_reference,
              description,
              metadata,
            })
          }
        }),
      ))
  })

  describe('invoices', () => {
    commonProperties(projections.invoices as never, { histories: invoices })

    it('agree with the state of the decider', () =>
      fc.assert(
        fc.property(invoices, ({ recorded, states }) => {
          for (const [n, state] of states.entries()) {
            if (state.status === 'none') continue
            const row = foldAll(projections.invoices as never, recorded.slice(0, n + 1))
            expect(row).to.include({
              state: state.status,
              amount_due: state.due,
              amount_paid: state.paid,
              amount_pending: state.pending,
              amount_refunded: BigInt(state.refunds.size),
              due_date: state.dueDate,
            })
          }
        }),
        { numRuns: 300 },
      ))
  })

  describe('payments', () => {
    commonProperties(projections.payments as never, { histories: payments })

    it('agree with the state of the decider', () =>
      fc.assert(
        fc.property(payments, ({ recorded, states }) => {
          for (const [n, state] of states.entries()) {
            if (state.status === 'none') continue
            const row = foldAll(projections.payments as never, recorded.slice(0, n + 1))
            const refunded = state.status === 'succeeded' ? state.refunded : 0n
            const publicState = publicStateOf(state.status, refunded)
            expect(row).to.include({ ...state.terms, refunded_amount: refunded, state: publicState })
            expect(row).to.include({ failure_code: 'code' in state ? state.code : null })
          }
        }),
      ))
  })

  describe('operations', () => {
    commonProperties(projections.operations as never, { histories: operations })

    it('agree with the state of the decider', () =>
      fc.assert(
        fc.property(operations, ({ recorded, states }) => {
          for (const [n, state] of states.entries()) {
            if (state.status === 'none') continue
            const row = foldAll(projections.operations as never, recorded.slice(0, n + 1))
            expect(row).to.deep.include({ state: state.status, attempt: state.attempt, ...state.terms })
          }
        }),
      ))
  })

  describe('API keys', () => {
    commonProperties(projections.apiKeys as never, { histories: keys })

    it('agree with the state of the decider, without its secrets', () =>
      fc.assert(
        fc.property(keys, ({ recorded, states }) => {
          for (const [n, state] of states.entries()) {
            if (state.status === 'none') continue
            const row = foldAll(projections.apiKeys as never, recorded.slice(0, n + 1))
            expect(row).to.deep.include({ state: state.status, scopes: state.scopes, quota: state.quota })
            if (state.status === 'active') expect(row).to.include({ expires_at: state.current.expires_at })
            else expect(row).to.include({ previous_secret_until: null })
            expect(JSON.stringify(Object.values(row ?? {}), textOfBigints)).to.not.match(/[0-9a-f]{64}/)
          }
        }),
      ))
  })

  describe('subscriptions', () => {
    commonProperties(projections.subscriptions as never, { histories: subscribed })

    it('agree with the state of the decider', () =>
      fc.assert(
        fc.property(subscribed, ({ recorded, states }) => {
          for (const [n, state] of states.entries()) {
            const row = foldAll(projections.subscriptions as never, recorded.slice(0, n + 1)) as SubscriptionRow
            expect(row.state).to.equal(state.status)
            if (state.status === 'none' || state.status === 'deleted') continue
            expect(row).to.deep.include({ scopes: state.scopes, replays: state.replays })
            expect(row.replay_to !== null).to.equal(state.isReplaying)
            expect(row.stop_reason !== null).to.equal(state.status === 'stopped')
          }
        }),
      ))
  })
})

/** The public state of a payment of 1000 after a refund of this amount. */
const publicStateOf = (
  status: 'initiated' | 'accepted' | 'succeeded' | 'refused' | 'failed',
  refunded: bigint,
): string => {
  if (status === 'initiated' || status === 'accepted') return 'pending'
  if (status === 'refused') return 'failed'
  if (refunded === 0n) return status
  return refunded === 1000n ? 'refunded' : 'partially_refunded'
}

/** A replacer that writes bigints as texts, because JSON has none. */
const textOfBigints = (_name: string, value: unknown): unknown => (typeof value === 'bigint' ? String(value) : value)
