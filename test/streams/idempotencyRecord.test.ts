import { expect } from 'chai'
import { annotationsSchema, idempotencyRecordSchema } from '../../streams/idempotencyRecord.ts'
import { isRejection, reject } from '../../streams/decider.ts'
import { claim } from './samples.ts'

describe('an idempotency record', () => {
  it('is stored whole, with any request that JSON can express', () => {
    const request = { a: [1, null, { b: 'c' }], '10': true, constructor: 'x' }
    expect(idempotencyRecordSchema.parse({ ...claim, request })).to.deep.equal({ ...claim, request })
  })

  for (const name of ['key_hash', 'caller', 'fingerprint', 'request', 'expires_at'] as const)
    it(`is invalid without its ${name}`, () => {
      const { [name]: _, ...rest } = claim
      expect(idempotencyRecordSchema.safeParse(rest).success).to.equal(false)
    })

  it('is invalid with a request that is not JSON', () =>
    expect(idempotencyRecordSchema.safeParse({ ...claim, request: { at: new Date(0) } }).success).to.equal(false))
})

describe('annotations', () => {
  it('are texts by any name', () =>
    expect(annotationsSchema.parse({ constructor: 'x', '': 'y' })).to.deep.equal({ constructor: 'x', '': 'y' }))

  for (const value of [1, null, true, {}, []])
    it(`are not ${JSON.stringify(value)}`, () =>
      expect(annotationsSchema.safeParse({ a: value }).success).to.equal(false))
})

describe('a rejection', () => {
  it('is a code with parameters for the caller', () => {
    expect(reject('resource_not_found')).to.deep.equal({ rejected: 'resource_not_found' })
    expect(reject('payment_exceeds_due', { still_due: 5n })).to.deep.equal({
      rejected: 'payment_exceeds_due',
      params: { still_due: 5n },
    })
  })

  it('is distinguished from events', () => {
    expect(isRejection(reject('resource_not_found'))).to.equal(true)
    expect(isRejection([])).to.equal(false)
  })
})
