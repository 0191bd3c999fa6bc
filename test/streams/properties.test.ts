import { expect } from 'chai'
import fc from 'fast-check'
import { type AnyCommand, type AnyEvent, type Decider, isRejection } from '../../streams/decider.ts'
import { apiKey, type ApiKeyCommand, type ApiKeyEvent } from '../../streams/apiKey/index.ts'
import { invoice, type InvoiceCommand, type InvoiceEvent, type InvoiceState } from '../../streams/invoice/index.ts'
import { operation, type OperationCommand, type OperationEvent } from '../../streams/operation/index.ts'
import { order, type OrderCommand, type OrderEvent } from '../../streams/order/index.ts'
import { payment, type PaymentCommand, type PaymentEvent } from '../../streams/payment/index.ts'
import { reference, type ReferenceCommand, type ReferenceEvent } from '../../streams/reference/index.ts'
import {
  anyApiKeyCommand,
  anyApiKeyEvent,
  anyInvoiceCommand,
  anyInvoiceEvent,
  anyOperationCommand,
  anyOperationEvent,
  anyOrderCommand,
  anyOrderEvent,
  anyPaymentCommand,
  anyPaymentEvent,
  anyReferenceCommand,
  anyReferenceEvent,
  settled,
} from './arbitraries.ts'
import { createOrder, issueApiKey, raiseInvoice, requestExport } from './samples.ts'

/** Properties of every sequence of commands and of events. */

const COMMANDS_MAX = 40
const SEQUENCE = { maxLength: COMMANDS_MAX }

/** Executes the commands in order, and passes each step to `onStep`. */
const execute = <S, C extends AnyCommand, E extends AnyEvent, Code extends string>(
  { initial, decide, evolve }: Decider<S, C, E, Code>,
  commands: readonly C[],
  onStep: (step: { before: S; command: C; events: readonly E[]; state: S }) => void,
): S =>
  commands.reduce((before, command) => {
    const decided = decide(command, before)
    const events = isRejection(decided) ? [] : decided
    const state = events.reduce((current, event) => evolve(current, event), before)
    onStep({ before, command, events, state })
    return state
  }, initial)

type AnyDecider<C extends AnyCommand, E extends AnyEvent> = Decider<unknown, C, E, string>

const commonProperties = <C extends AnyCommand, E extends AnyEvent>(
  decider: AnyDecider<C, E>,
  anyCommand: fc.Arbitrary<C>,
  anyEvent: fc.Arbitrary<E>,
  /** Commands that are refused when they are repeated, because a repetition by a caller is a new request, not a resend. */
  refusedAgain: readonly C['type'][],
): void => {
  it('folds any sequence of its own events without an error', () =>
    fc.assert(
      fc.property(fc.array(anyEvent, SEQUENCE), events => {
        events.reduce<unknown>((state, event) => decider.evolve(state, event), decider.initial)
      }),
    ))

  it('does not modify the state that it is given', () =>
    fc.assert(
      fc.property(fc.array(anyEvent, SEQUENCE), anyEvent, (events, last) => {
        const state = events.reduce<unknown>((before, event) => decider.evolve(before, event), decider.initial)
        const copy = structuredClone(state)
        decider.evolve(state, last)
        expect(state).to.deep.equal(copy)
      }),
    ))

  it('executes a repeated command once', () =>
    fc.assert(
      fc.property(fc.array(anyCommand, SEQUENCE), commands => {
        execute(decider, commands, ({ command, events, state }) => {
          if (events.length === 0) return
          const again = decider.decide(command, state)
          if (refusedAgain.includes(command.type)) expect(again).to.have.property('rejected')
          else expect(again).to.deep.equal([])
        })
      }),
    ))

  it('decides the same on the same state', () =>
    fc.assert(
      fc.property(fc.array(anyCommand, SEQUENCE), commands => {
        execute(decider, commands, ({ before, command }) =>
          expect(decider.decide(command, before)).to.deep.equal(decider.decide(command, before)),
        )
      }),
    ))
}

const sum = (amounts: readonly bigint[]): bigint => amounts.reduce((total, one) => total + one, 0n)

const amountOf = (state: Exclude<InvoiceState, { status: 'none' }>, status: 'applied' | 'reserved'): bigint =>
  sum([...state.payments.values()].filter(part => part.status === status).map(part => part.amount))

describe('in any sequence of commands and events,', () => {
  describe('an invoice', () => {
    commonProperties(invoice.decider as AnyDecider<InvoiceCommand, InvoiceEvent>, anyInvoiceCommand, anyInvoiceEvent, [
      'ApproveInvoice',
      'VoidInvoice',
    ])

    it('never applies or reserves more than is due, and accounts for each allocation', () =>
      fc.assert(
        fc.property(fc.array(anyInvoiceCommand, SEQUENCE), commands => {
          const begin = [raiseInvoice, { type: 'ApproveInvoice' as const, approved_by: 'boss' }]
          execute(invoice.decider, [...begin, ...commands], ({ state }) => {
            if (state.status === 'none') return
            expect(state.paid + state.pending <= state.due, 'paid and reserved within the due amount').to.equal(true)
            expect(state.paid).to.equal(amountOf(state, 'applied'))
            expect(state.pending).to.equal(amountOf(state, 'reserved'))
            expect(state.status === 'paid').to.equal(state.paid === state.due)
            if (state.status === 'voided') expect(state.paid + state.pending).to.equal(0n)
          })
        }),
        { numRuns: 500 },
      ))

    it('announces that it is paid at most once, with the amount that is due', () =>
      fc.assert(
        fc.property(fc.array(anyInvoiceCommand, SEQUENCE), commands => {
          const announced: InvoiceEvent[] = []
          const begin = [raiseInvoice, { type: 'ApproveInvoice' as const, approved_by: 'boss' }]
          const end = execute(invoice.decider, [...begin, ...commands], ({ events }) =>
            announced.push(...events.filter(({ type }) => type === 'InvoicePaid')),
          )
          expect(announced).to.have.length(end.status === 'paid' ? 1 : 0)
          for (const { data } of announced) expect(data).to.include({ amount_due: 2500n, amount_paid: 2500n })
        }),
        { numRuns: 500 },
      ))

    it('never changes the final status of a payment: refused, released or applied', () =>
      fc.assert(
        fc.property(fc.array(anyInvoiceCommand, SEQUENCE), commands => {
          execute(invoice.decider, commands, ({ before, state }) => {
            if (before.status === 'none' || state.status === 'none') return
            for (const [paymentId, part] of before.payments)
              if (part.status !== 'reserved') expect(state.payments.get(paymentId)).to.deep.equal(part)
          })
        }),
      ))
  })

  describe('an order', () => {
    commonProperties(order.decider as AnyDecider<OrderCommand, OrderEvent>, anyOrderCommand, anyOrderEvent, [
      'CreateOrder',
      'CancelOrder',
      'DeleteOrder',
    ])

    it('has one invoice at a time, and the total of its lines', () =>
      fc.assert(
        fc.property(fc.array(anyOrderCommand, SEQUENCE), commands => {
          execute(order.decider, [createOrder, ...commands], ({ before, events, state }) => {
            if (state.status === 'none') return
            expect(state.total).to.equal(sum(state.lines.map(line => BigInt(line.quantity) * line.unit_amount)))
            if (events.some(({ type }) => type === 'OrderInvoiced')) expect(before.status).to.equal('open')
          })
        }),
      ))

    it('has no event after its deletion', () =>
      fc.assert(
        fc.property(fc.array(anyOrderCommand, SEQUENCE), commands => {
          execute(order.decider, [createOrder, ...commands], ({ before, events }) => {
            if (before.status === 'deleted') expect(events).to.deep.equal([])
          })
        }),
      ))
  })

  describe('a payment', () => {
    commonProperties(payment.decider as AnyDecider<PaymentCommand, PaymentEvent>, anyPaymentCommand, anyPaymentEvent, [
      'InitiatePayment',
    ])

    it('has one outcome, which never changes', () =>
      fc.assert(
        fc.property(fc.array(anyPaymentCommand, SEQUENCE), commands => {
          execute(payment.decider, commands, ({ before, state }) => {
            if (before.status === 'succeeded') expect(state.status).to.equal('succeeded')
            if (before.status === 'refused' || before.status === 'failed') expect(state).to.equal(before)
          })
        }),
      ))

    it('is settled or failed only when it is deferred and accepted', () =>
      fc.assert(
        fc.property(fc.array(anyPaymentCommand, SEQUENCE), commands => {
          execute(payment.decider, commands, ({ before, command, events }) => {
            if (command.type !== 'SettlePayment' && command.type !== 'FailPayment') return
            if (events.length > 0) expect(before.status).to.equal('accepted')
            if (events.length > 0 && 'terms' in before) expect(before.terms.settlement).to.equal('deferred')
          })
        }),
      ))

    it('never refunds more than its amount, and accounts for each refund', () =>
      fc.assert(
        fc.property(settled, fc.array(anyPaymentCommand, SEQUENCE), (begin, commands) => {
          execute(payment.decider, [...begin, ...commands], ({ before, events, state }) => {
            if (state.status !== 'succeeded') return
            expect(state.refunded <= state.terms.amount, 'refunded within the amount').to.equal(true)
            expect(state.refunded).to.equal(sum([...state.refunds.values()].map(part => part ?? 0n)))
            for (const event of events)
              if (event.type === 'PaymentRefunded') expect(event.data.refunded_amount).to.equal(state.refunded)
            if (before.status !== 'succeeded') return
            for (const [refundId, part] of before.refunds) expect(state.refunds.get(refundId)).to.equal(part)
          })
        }),
      ))
  })

  describe('an operation', () => {
    commonProperties(
      operation.decider as AnyDecider<OperationCommand, OperationEvent>,
      anyOperationCommand,
      anyOperationEvent,
      ['RequestExport'],
    )

    it('is completed at most once, by the newest attempt', () =>
      fc.assert(
        fc.property(fc.array(anyOperationCommand, SEQUENCE), commands => {
          const attempts: number[] = []
          const ends: number[] = []
          execute(operation.decider, [requestExport, ...commands], ({ events }) => {
            for (const event of events) {
              if (event.type === 'OperationStarted') attempts.push(event.data.attempt)
              if (event.type === 'ExportCompleted') ends.push(event.data.attempt)
            }
          })
          expect(attempts).to.deep.equal(attempts.map((_, n) => n + 1))
          expect(ends).to.deep.equal(ends.length === 0 ? [] : [attempts.length])
        }),
      ))
  })

  describe('an API key', () => {
    commonProperties(apiKey.decider as AnyDecider<ApiKeyCommand, ApiKeyEvent>, anyApiKeyCommand, anyApiKeyEvent, [
      'IssueApiKey',
      'RevokeApiKey',
    ])

    it('has two secrets at most, the newest and the previous one, and does not extend their lifetimes', () =>
      fc.assert(
        fc.property(fc.array(anyApiKeyCommand, SEQUENCE), commands => {
          execute(apiKey.decider, [issueApiKey, ...commands], ({ before, events, state }) => {
            if (before.status !== 'active' || state.status !== 'active' || events.length === 0) return
            expect(state.previous).to.include({ nonce: before.current.nonce, hash: before.current.hash })
            expect(Date.parse(state.previous?.expires_at ?? '')).to.be.at.most(Date.parse(before.current.expires_at))
          })
        }),
      ))

    it('has no secret after it is revoked', () =>
      fc.assert(
        fc.property(fc.array(anyApiKeyCommand, SEQUENCE), commands => {
          execute(apiKey.decider, [issueApiKey, ...commands], ({ before, events, state }) => {
            if (before.status === 'revoked') expect(events).to.deep.equal([])
            if (state.status === 'revoked') expect(state).to.not.have.any.keys('current', 'previous')
          })
        }),
      ))
  })

  describe('a reference', () => {
    commonProperties(
      reference.decider as AnyDecider<ReferenceCommand, ReferenceEvent>,
      anyReferenceCommand,
      anyReferenceEvent,
      [],
    )

    it('has its next holder only after its release, and no holder twice', () =>
      fc.assert(
        fc.property(fc.array(anyReferenceCommand, SEQUENCE), commands => {
          const held = new Set<string>()
          execute(reference.decider, commands, ({ before, state }) => {
            if (state.holder === before.holder || state.holder === null) return
            expect(before.holder).to.equal(null)
            expect(held.has(state.holder), `${state.holder} holds it a second time`).to.equal(false)
            held.add(state.holder)
          })
        }),
      ))
  })
})
