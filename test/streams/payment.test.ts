import { payment, type PaymentEvent } from '../../streams/payment/index.ts'
import { scenario } from '../support/scenario.ts'
import { id, initiatePayment, paymentFailed, paymentInitiated, terms } from './samples.ts'

const { given } = scenario(payment.decider)

const confirm = { type: 'ConfirmPayment' } as const
const settle = { type: 'SettlePayment' } as const
const fail = (code: string, held_by: ReturnType<typeof id<'pay'>> | null = null) =>
  ({ type: 'FailPayment', code, held_by }) as const

const immediate = paymentInitiated('immediate')
const deferred = paymentInitiated('deferred')
const accepted: PaymentEvent = { type: 'PaymentAccepted', data: terms('deferred') }
const succeeded = (settlement: 'immediate' | 'deferred'): PaymentEvent => ({
  type: 'PaymentSucceeded',
  data: terms(settlement),
})

describe('a payment', () => {
  describe('is initiated', () => {
    it('with its claim', () =>
      given().when(initiatePayment('immediate')).expectThenRefused('concurrent_modification', immediate))
    it('once: whoever comes second has lost the race for the key', () =>
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
    it('not before it exists', () => given().when(confirm).expectRejected('resource_not_found'))
  })

  describe('settles', () => {
    it('when it is accepted, once', () =>
      given(deferred, accepted).when(settle).expectThenRefused('payment_state_conflict', succeeded('deferred')))
    it('not before it is accepted', () =>
      given(deferred).when(settle).expectRejected('payment_state_conflict', { state: 'initiated' }))
    it('not when it has failed', () =>
      given(deferred, accepted, paymentFailed('deferred', 'card_declined'))
        .when(settle)
        .expectRejected('payment_state_conflict', { state: 'failed' }))
    it('not before it exists', () => given().when(settle).expectRejected('resource_not_found'))
  })

  describe('fails', () => {
    it('when the invoice refuses it', () =>
      given(immediate).when(fail('payment_exceeds_due')).expectOnce(paymentFailed('immediate', 'payment_exceeds_due')))
    it('when another payment has its reference, and says which', () =>
      given(immediate)
        .when(fail('payment_reference_conflict', id('pay', 2)))
        .expectOnce(paymentFailed('immediate', 'payment_reference_conflict', id('pay', 2))))
    it('when the settler says so', () =>
      given(deferred, accepted).when(fail('card_declined')).expectOnce(paymentFailed('deferred', 'card_declined')))
    it('for one reason', () =>
      given(immediate, paymentFailed('immediate', 'payment_exceeds_due'))
        .when(fail('card_declined'))
        .expectRejected('payment_state_conflict', { state: 'failed' }))
    it('not when it has succeeded', () =>
      given(immediate, succeeded('immediate'))
        .when(fail('card_declined'))
        .expectRejected('payment_state_conflict', { state: 'succeeded' }))
    it('not before it exists', () => given().when(fail('card_declined')).expectRejected('resource_not_found'))
  })
})
