import { expect } from 'chai'
import { z, ZodError } from 'zod'
import { codecOf, UnknownEvent } from '../../streams/codec.ts'
import { aggregates } from '../../streams/index.ts'
import { minorUnits } from '../../streams/money.ts'

/** A codec with an event in its third version: `price` was renamed to `amount`, then `currency` was added. */
const codec = codecOf(
  {
    Sold: z.object({ amount: minorUnits, currency: z.string(), note: z.string().optional() }),
    Closed: z.object({}),
  },
  {
    Sold: [({ price, ...rest }) => ({ ...rest, amount: price }), data => ({ ...data, currency: 'EUR' })],
  },
)

describe('the codec of an aggregate', () => {
  it('stores the latest version, amounts as numbers', () =>
    expect(codec.encode({ type: 'Sold', data: { amount: 5n, currency: 'USD' } })).to.deep.equal({
      data: { amount: 5, currency: 'USD' },
      schemaVersion: 3,
    }))

  it('reads what it stored', () => {
    const event = { type: 'Sold', data: { amount: 5n, currency: 'USD', note: 'x' } } as const
    const { data, schemaVersion } = codec.encode(event)
    expect(codec.decode('Sold', data, schemaVersion)).to.deep.equal(event)
  })

  it('upcasts the oldest version step by step', () =>
    expect(codec.decode('Sold', { price: 7 }, 1)).to.deep.equal({
      type: 'Sold',
      data: { amount: 7n, currency: 'EUR' },
    }))

  it('upcasts from the version that is stored', () =>
    expect(codec.decode('Sold', { amount: 7 }, 2)).to.deep.equal({
      type: 'Sold',
      data: { amount: 7n, currency: 'EUR' },
    }))

  it('has version 1 for an event that never changed', () =>
    expect(codec.encode({ type: 'Closed', data: {} }).schemaVersion).to.equal(1))

  it('does not change the stored data that it is given', () => {
    const stored = Object.freeze({ price: 7 })
    codec.decode('Sold', stored, 1)
    expect(stored).to.deep.equal({ price: 7 })
  })

  for (const version of [0, -1, 4, 99])
    it(`refuses version ${version} by name`, () =>
      expect(() => codec.decode('Sold', { amount: 1, currency: 'USD' }, version)).to.throw(
        UnknownEvent,
        `The event Sold of version ${version} is unknown to this build.`,
      ))

  for (const type of ['sold', 'Bought', '', 'constructor', 'toString', '__proto__', 'hasOwnProperty'])
    it(`refuses the type ${JSON.stringify(type)} by name`, () => {
      expect(() => codec.decode(type, {}, 1)).to.throw(UnknownEvent, `The event ${type} of version 1`)
      expect(() => codec.encode({ type: type as 'Sold', data: { amount: 1n, currency: 'USD' } })).to.throw(UnknownEvent)
    })

  for (const [flaw, data] of Object.entries({
    'lacks a member': { amount: 1 },
    'has a text for an amount': { amount: '1', currency: 'USD' },
    'has a fraction for an amount': { amount: 1.5, currency: 'USD' },
    'is null': null,
    'is a list': [],
  }))
    it(`refuses data that ${flaw}`, () => expect(() => codec.decode('Sold', data, 3)).to.throw(ZodError))

  it('refuses to store data that it could not read again', () =>
    expect(() => codec.encode({ type: 'Sold', data: { amount: -1n, currency: 'USD' } })).to.throw(ZodError))

  it('names every type', () => {
    expect(codec.types).to.deep.equal(['Sold', 'Closed'])
    for (const aggregate of Object.values(aggregates)) expect(aggregate.codec.types).to.not.deep.equal([])
  })
})
