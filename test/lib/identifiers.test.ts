import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import fc from 'fast-check'
import { canonicalJson, derivedId, eventIdOf, randomId } from '../../src/lib/identifiers.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'

const RANDOM_IDS = 10_000
const UUID_V8 = /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

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

describe('ids of commands', () => {
  it('are always derived in the same way, because a stored stream would not be found otherwise', () => {
    expect(derivedId('ref', 'acme', 'INV-2026-17')).to.equal('ref_EWZV9A23TRE86T8Y7QK3T587G6')
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
