import { expect } from 'chai'
import { payment, type PaymentEvent, type RefusalCode, refundable } from '../../streams/payment/index.ts'
import { scenario, stateAfter } from '../support/scenario.ts'
import { id, initiatePayment, paymentFailed, paymentInitiated, terms } from './samples.ts'

const { given } = scenario(payment.decider)

const confirm = { type: 'ConfirmPayment' } as const
const settle = { type: 'SettlePayment' } as const
const fail = (code: string) => ({ type: 'FailPayment', code }) as const
const refuse = (code: RefusalCode, held_by: ReturnType<typeof id<'pay'>> | null = null) =>
  ({ type: 'RefusePayment', code, held_by }) as const

const immediate = paymentInitiated('immediate')
const deferred = paymentInitiated('deferred')
const accepted: PaymentEvent = { type: 'PaymentAccepted', data: terms('deferred') }
const succeeded = (settlement: 'immediate' | 'deferred'): PaymentEvent => ({
  type: 'PaymentSucceeded',
  data: terms(settlement),
})

const refundBy = (n: number, amount: bigint | null) =>
  ({ type: 'RefundPayment', refund_id: id('rfd', n), amount, reason: 'broken' }) as const
const refunded = (n: number, refund_amount: bigint, refunded_amount: bigint): PaymentEvent => ({
  type: 'PaymentRefunded',
  data: { ...terms('immediate'), refund_id: id('rfd', n), refund_amount, refunded_amount, reason: 'broken' },
})
const refused = (n: number): PaymentEvent => ({
  type: 'RefundRefused',
  data: { refund_id: id('rfd', n), code: 'payment_state_conflict' },
})

describe('a payment', () => {
  describe('is initiated', () => {
    it('with its idempotency record', () =>
      given().when(initiatePayment('immediate')).expectThenRefused('concurrent_modification', immediate))
    it('once; a second command is refused as a concurrent modification', () =>
      given(immediate, succeeded('immediate'))
        .when(initiatePayment('immediate'))
        .expectRejected('concurrent_modification'))
  })

  describe('is confirmed', () => {
    it('and has succeeded, when it is immediate', () =>
      given(immediate).when(confirm).expectOnce(succeeded('immediate')))
    it('and is accepted, when it is deferred', () => given(deferred).when(confirm).expectOnce(accepted))
    it('once, also after it has settled', () =>
      given(deferred, accepted, succeeded('deferred')).when(confirm).expectNothing())
    it('not when it has failed', () =>
      given(immediate, paymentFailed('immediate', 'payment_exceeds_due'))
        .when(confirm)
        .expectRejected('payment_state_conflict', { state: 'failed' }))
    it('once, also after its settlement has failed', () =>
      given(deferred, accepted, paymentFailed('deferred', 'card_declined')).when(confirm).expectNothing())
    it('not before it exists', () => given().when(confirm).expectRejected('resource_not_found'))
  })

  describe('settles', () => {
    it('when it is accepted, once', () => given(deferred, accepted).when(settle).expectOnce(succeeded('deferred')))
    it('not when it was immediate', () =>
      given(immediate, succeeded('immediate'))
        .when(settle)
        .expectRejected('payment_state_conflict', { state: 'succeeded' }))
    it('not before it is accepted', () =>
      given(deferred).when(settle).expectRejected('payment_state_conflict', { state: 'pending' }))
    it('not when it has failed', () =>
      given(deferred, accepted, paymentFailed('deferred', 'card_declined'))
        .when(settle)
        .expectRejected('payment_state_conflict', { state: 'failed' }))
    it('not before it exists', () => given().when(settle).expectRejected('resource_not_found'))
  })

  describe('is refused', () => {
    it('when the invoice does not accept it', () =>
      given(immediate)
        .when(refuse('payment_exceeds_due'))
        .expectOnce(paymentFailed('immediate', 'payment_exceeds_due')))
    it('when another payment has its reference, with the id of that payment', () =>
      given(immediate)
        .when(refuse('payment_reference_conflict', id('pay', 2)))
        .expectOnce(paymentFailed('immediate', 'payment_reference_conflict', id('pay', 2))))
    it('for its first reason alone', () =>
      given(immediate, paymentFailed('immediate', 'payment_exceeds_due'))
        .when(refuse('payment_not_allowed'))
        .expectRejected('payment_state_conflict', { state: 'failed' }))
    it('not after it is accepted', () =>
      given(deferred, accepted)
        .when(refuse('payment_exceeds_due'))
        .expectRejected('payment_state_conflict', { state: 'pending' }))
    it('not before it exists', () => given().when(refuse('payment_exceeds_due')).expectRejected('resource_not_found'))
  })

  describe('fails', () => {
    it('when its settlement fails', () =>
      given(deferred, accepted).when(fail('card_declined')).expectOnce(paymentFailed('deferred', 'card_declined')))
    for (const [name, initiated] of Object.entries({ immediate, deferred }))
      it(`not between its idempotency record and its outcome: ${name}`, () =>
        given(initiated).when(fail('card_declined')).expectRejected('payment_state_conflict', { state: 'pending' }))
    it('for its first reason alone', () =>
      given(deferred, accepted, paymentFailed('deferred', 'insufficient_funds'))
        .when(fail('card_declined'))
        .expectRejected('payment_state_conflict', { state: 'failed' }))
    it('not when it was refused, also for the same reason', () =>
      given(immediate, paymentFailed('immediate', 'payment_exceeds_due'))
        .when(fail('payment_exceeds_due'))
        .expectRejected('payment_state_conflict', { state: 'failed' }))
    it('not when it has succeeded', () =>
      given(immediate, succeeded('immediate'))
        .when(fail('card_declined'))
        .expectRejected('payment_state_conflict', { state: 'succeeded' }))
    it('not before it exists', () => given().when(fail('card_declined')).expectRejected('resource_not_found'))
  })

  describe('is refunded', () => {
    const paid = [immediate, succeeded('immediate')] as const

    it('in part', () =>
      given(...paid)
        .when(refundBy(1, 400n))
        .expectOnce(refunded(1, 400n, 400n)))
    it('in parts that add up', () =>
      given(...paid, refunded(1, 400n, 400n))
        .when(refundBy(2, 600n))
        .expectOnce(refunded(2, 600n, 1000n)))
    it('with the whole rest, when no amount is named', () =>
      given(...paid, refunded(1, 400n, 400n))
        .when(refundBy(2, null))
        .expectOnce(refunded(2, 600n, 1000n)))
    it('not with more than the rest, which is recorded', () =>
      given(...paid, refunded(1, 400n, 400n))
        .when(refundBy(2, 601n))
        .expectOnce(refused(2)))
    it('not when there is no rest', () => {
      given(...paid, refunded(1, 1000n, 1000n))
        .when(refundBy(2, 1n))
        .expectOnce(refused(2))
      given(...paid, refunded(1, 1000n, 1000n))
        .when(refundBy(2, null))
        .expectOnce(refused(2))
    })
    it('once for each refund, also after later ones', () => {
      given(...paid, refunded(1, 400n, 400n), refunded(2, 600n, 1000n))
        .when(refundBy(1, 400n))
        .expectNothing()
      given(...paid, refused(1))
        .when(refundBy(1, 400n))
        .expectNothing()
    })
    it('not before it has succeeded', () => {
      given(deferred, accepted).when(refundBy(1, 1n)).expectRejected('payment_state_conflict', { state: 'pending' })
      given(immediate, paymentFailed('immediate', 'payment_exceeds_due'))
        .when(refundBy(1, 1n))
        .expectRejected('payment_state_conflict', { state: 'failed' })
    })
    it('not before it exists', () => given().when(refundBy(1, 1n)).expectRejected('resource_not_found'))
    it('and then confirmed and settled without an event', () => {
      given(...paid, refunded(1, 1000n, 1000n))
        .when(confirm)
        .expectNothing()
      given(deferred, accepted, succeeded('deferred'), refunded(1, 1n, 1n))
        .when(settle)
        .expectNothing()
    })
  })

  it('can be refunded up to the amount that is not refunded yet', () => {
    const leftAfter = (...events: readonly PaymentEvent[]): bigint => refundable(stateAfter(payment.decider, events))
    expect(leftAfter()).to.equal(0n)
    expect(leftAfter(deferred, accepted)).to.equal(0n)
    expect(leftAfter(immediate, succeeded('immediate'))).to.equal(1000n)
    expect(leftAfter(immediate, succeeded('immediate'), refunded(1, 400n, 400n), refused(2))).to.equal(600n)
  })
})
