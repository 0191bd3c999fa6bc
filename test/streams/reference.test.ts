import { reference, type ReferenceEvent } from '../../streams/reference/index.ts'
import { scenario } from '../support/scenario.ts'
import { id } from './samples.ts'

const { given } = scenario(reference.decider)

const take = (n: number) => ({ type: 'TakeReference', payment_id: id('pay', n) }) as const
const release = (n: number) => ({ type: 'ReleaseReference', payment_id: id('pay', n) }) as const
const taken = (n: number): ReferenceEvent => ({ type: 'ReferenceTaken', data: { payment_id: id('pay', n) } })
const released = (n: number): ReferenceEvent => ({ type: 'ReferenceReleased', data: { payment_id: id('pay', n) } })
const refused = (n: number, holder: number): ReferenceEvent => ({
  type: 'ReferenceRefused',
  data: { payment_id: id('pay', n), held_by: id('pay', holder) },
})

describe('a reference', () => {
  it('is taken by the first payment that requests it', () => given().when(take(1)).expectOnce(taken(1)))
  it('is refused to any other payment, with the id of its holder', () =>
    given(taken(1)).when(take(2)).expectOnce(refused(2, 1)))
  it('remains refused after its release', () =>
    given(taken(1), refused(2, 1), released(1)).when(take(2)).expectNothing())
  it('is released by the payment that holds it', () => given(taken(1)).when(release(1)).expectOnce(released(1)))
  it('is not released by any other', () => {
    given(taken(1), refused(2, 1)).when(release(2)).expectNothing()
    given().when(release(1)).expectNothing()
  })
  it('can be taken by another payment after its release', () =>
    given(taken(1), released(1)).when(take(2)).expectOnce(taken(2)))
  it('is not taken again by a payment that released it, when a second process completes it late', () => {
    given(taken(1), released(1)).when(take(1)).expectNothing()
    given(taken(1), released(1), taken(2)).when(take(1)).expectNothing()
  })
})
