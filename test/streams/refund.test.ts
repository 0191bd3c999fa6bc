import { refund, type RefundCommand, type RefundEvent } from '../../streams/refund/index.ts'
import { scenario } from '../support/scenario.ts'
import { claim, id } from './samples.ts'

const { given } = scenario(refund.decider)

const terms = { payment_id: id('pay'), amount: null, reason: 'broken', claim }
const initiate: RefundCommand = { type: 'InitiateRefund', ...terms }
const initiated: RefundEvent = { type: 'RefundInitiated', data: terms }

describe('a refund', () => {
  it('is initiated with its idempotency record', () =>
    given().when(initiate).expectThenRefused('concurrent_modification', initiated))
  it('is initiated once; a second command is refused as a concurrent modification', () =>
    given(initiated)
      .when({ ...initiate, amount: 5n })
      .expectRejected('concurrent_modification'))
})
