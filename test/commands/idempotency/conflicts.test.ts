import { expect } from 'chai'
import fc from 'fast-check'
import { differingPointers } from '../../../src/commands/idempotency/conflicts.ts'

describe('the pointers at which two requests differ', () => {
  it('are none for equal requests, in any order of members', () =>
    expect(differingPointers({ a: 1, b: { c: [1, 2] } }, { b: { c: [1, 2] }, a: 1 })).to.deep.equal([]))

  it('are exact and complete', () =>
    expect(
      differingPointers({ a: 1, b: { c: [1, 2], d: 'x' }, e: null }, { a: 2, b: { c: [1, 3], d: 'x' }, f: 0 }),
    ).to.have.members(['/a', '/b/c/1', '/e', '/f']))

  it('are escaped as RFC 6901 requires', () =>
    expect(differingPointers({ 'a/b': 1, 'c~d': 1 }, { 'a/b': 2, 'c~d': 2 })).to.deep.equal(['/a~1b', '/c~0d']))

  it('name members that every JavaScript object inherits', () =>
    expect(differingPointers({ constructor: 'x' }, {})).to.deep.equal(['/constructor']))

  it('name the whole value where the types differ', () => {
    expect(differingPointers({ a: [1] }, { a: '1' })).to.deep.equal(['/a'])
    expect(differingPointers({ a: null }, { a: {} })).to.deep.equal(['/a'])
  })

  it('never contain a value', () =>
    fc.assert(
      fc.property(fc.string({ minLength: 8 }), fc.string({ minLength: 8 }), (one, other) => {
        const pointers = differingPointers({ secret: one }, { secret: other })
        expect(pointers).to.deep.equal(one === other ? [] : ['/secret'])
      }),
    ))
})
