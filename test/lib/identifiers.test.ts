import { createHash, createHmac, randomBytes } from 'node:crypto'
import { expect } from 'chai'
import fc from 'fast-check'
import {
  canonicalJson,
  newIdempotencyRecord,
  derivedId,
  differingPointers,
  eventIdOf,
  idOfKey,
  randomId,
} from '../../src/lib/identifiers.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import { ID_PREFIXES } from '../../streams/ids.ts'

const RANDOM_IDS = 10_000
const UUID_V8 = /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

const secret = Buffer.alloc(32, 7)
const scope = { tenant: 'acme', subject: 'clerk', client: 'shop', operation: 'create_payment' }

describe('canonical JSON', () => {
  it('orders members by UTF-16 code units, as the example of RFC 8785 §3.2.3 does', () => {
    const value = {
      '\u20ac': 'Euro Sign',
      '\r': 'Carriage Return',
      '\ufb33': 'Hebrew Letter Dalet With Dagesh',
      '1': 'One',
      '\ud83d\ude00': 'Emoji: Grinning Face',
      '\u0080': 'Control',
      '\u00f6': 'Latin Small Letter O With Diaeresis',
    }
    const names = ['\r', '1', '\u0080', '\u00f6', '\u20ac', '\ud83d\ude00', '\ufb33'] as const
    const members = names.map(name => `${JSON.stringify(name)}:${JSON.stringify(value[name])}`)
    expect(canonicalJson(value)).to.equal(`{${members.join(',')}}`)
  })

  it('orders members whose names look like numbers as texts', () =>
    expect(canonicalJson({ 9: 0, 10: 0, a: 0, 100: 0 })).to.equal('{"10":0,"100":0,"9":0,"a":0}'))

  it('writes literals, texts and numbers as RFC 8785 §3.2.2 does', () => {
    const value = {
      numbers: [333333333.3333333, 1e30, 4.5, 2e-3, 0.000000000000000000000000001],
      string: '\u20ac$\u000f\u000aA\'\u0042\u0022\u005c\\"/',
      literals: [null, true, false],
    }
    expect(canonicalJson(value)).to.equal(
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    )
  })

  it('is the same for every order of members, at any depth, and keeps that of lists', () =>
    fc.assert(
      fc.property(fc.jsonValue(), value => {
        const shuffled = JSON.parse(JSON.stringify(value), (_, inner: unknown) =>
          inner !== null && typeof inner === 'object' && !Array.isArray(inner)
            ? Object.fromEntries(Object.entries(inner).toReversed())
            : inner,
        ) as unknown
        expect(canonicalJson(shuffled)).to.equal(canonicalJson(value))
        expect(JSON.parse(canonicalJson(value))).to.deep.equal(JSON.parse(JSON.stringify(value)))
      }),
    ))

  it('leaves out what JSON leaves out', () => expect(canonicalJson({ b: undefined, a: 1 })).to.equal('{"a":1}'))
})

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

describe('ids of commands', () => {
  it('are always derived in the same way, because a stored stream would not be found otherwise', () => {
    expect(derivedId('ref', 'acme', 'INV-2026-17')).to.equal('ref_EWZV9A23TRE86T8Y7QK3T587G6')
    expect(idOfKey('pay', { scope, key: 'order-17-payment-1', secret })).to.equal('pay_01ABVK5D1FTHPC66V0PSK9R82Z')
    expect(eventIdOf('command-1', 'pay_0', 0n)).to.equal('b26dcb35-1116-8f3c-a021-feab0a38b933')
  })

  it('differ with each part, and with the boundaries between parts', () => {
    const ids = [
      derivedId('ref', 'ab', 'c'),
      derivedId('ref', 'a', 'bc'),
      derivedId('ref', 'abc'),
      derivedId('ref', 'ab","c'),
      derivedId('ref', 'c', 'ab'),
    ]
    expect(new Set(ids).size).to.equal(ids.length)
  })

  it('of a key differ with tenant, caller, operation, key and secret, and cannot be computed without the secret', () => {
    const base = { scope, key: 'k-1', secret }
    const guessed = derivedId('pay', scope.tenant, scope.subject, scope.client, scope.operation, 'k-1')
    expect(idOfKey('pay', base)).to.not.equal(guessed)
    const others = [
      { ...base, key: 'k-2' },
      { ...base, secret: Buffer.alloc(32, 8) },
      ...(['tenant', 'subject', 'client', 'operation'] as const).map(name => ({
        ...base,
        scope: { ...scope, [name]: 'other' },
      })),
    ]
    expect(new Set([base, ...others].map(one => idOfKey('pay', one))).size).to.equal(others.length + 1)
  })

  it(`that are random have the form of the contract, and are distinct in ${RANDOM_IDS}`, () => {
    const world = realWorld()
    const ids = new Set(Array.from({ length: RANDOM_IDS }, () => randomId('ord', world)))
    expect(ids.size).to.equal(RANDOM_IDS)
    for (const id of ids) expect(id).to.match(/^ord_[0-9A-HJKMNP-TV-Z]{26}$/)
  })

  it('of events are UUIDs of version 8, equal for a resend and distinct for each event', () => {
    expect(eventIdOf('command-1', 'pay_0', 0n)).to.not.equal(eventIdOf('command-1', 'inv_0', 0n))
    const commands = Array.from({ length: 1_000 }, () => randomBytes(8).toString('hex'))
    const ids = commands.flatMap(command => [0n, 1n, 2n].map(revision => eventIdOf(command, 'pay_0', revision)))
    for (const id of ids) expect(id).to.match(UUID_V8)
    expect(new Set(ids).size).to.equal(3_000)
    expect(commands.map(command => eventIdOf(command, 'pay_0', 0n))).to.deep.equal(ids.filter((_, n) => n % 3 === 0))
  })
})

describe('the idempotency record of a key', () => {
  const claim = (request: Parameters<typeof newIdempotencyRecord>[1], key = 'secret-key', of = secret) =>
    newIdempotencyRecord({ scope, key, secret: of }, request, '2026-12-31T00:00:00.000Z')

  it('has the fingerprint of the request, in any order of its members', () => {
    const one = claim({ amount: 10, metadata: { b: '1', a: '2' } })
    expect(claim({ metadata: { a: '2', b: '1' }, amount: 10 }).fingerprint).to.equal(one.fingerprint)
    expect(claim({ amount: 11, metadata: { b: '1', a: '2' } }).fingerprint).to.not.equal(one.fingerprint)
    expect(one.fingerprint).to.match(/^[0-9a-f]{64}$/)
  })

  it('has the caller and the expiry, and not the key', () => {
    expect(claim({})).to.deep.include({
      caller: { subject: 'clerk', client: 'shop' },
      expires_at: '2026-12-31T00:00:00.000Z',
      request: {},
    })
    expect(JSON.stringify(claim({}))).to.not.contain('secret-key')
    expect(claim({}, 'a').key_hash).to.not.equal(claim({}, 'b').key_hash)
  })

  it('has a hash of the key that cannot be computed without the secret of the log', () => {
    const { key_hash } = claim({})
    const text = JSON.stringify([scope.tenant, scope.subject, scope.client, scope.operation, 'secret-key'])
    expect(key_hash)
      .to.match(/^[0-9a-f]{64}$/)
      .and.to.equal(claim({}).key_hash)
    expect(key_hash).to.not.equal(createHash('sha256').update(text).digest('hex'))
    expect(key_hash).to.not.equal(claim({}, 'secret-key', Buffer.alloc(32, 8)).key_hash)
  })

  it('has a hash of the key that is not the one from which an id is made', () => {
    const { tenant, subject, client, operation } = scope
    const hashOf = (use: string): string =>
      createHmac('sha256', secret)
        .update(JSON.stringify([use, tenant, subject, client, operation, 'secret-key']))
        .digest('hex')
    const ids = ID_PREFIXES.map(hashOf)
    expect(ids).to.not.include(claim({}).key_hash)
  })
})
