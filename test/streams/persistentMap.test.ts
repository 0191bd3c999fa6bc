import { expect } from 'chai'
import fc from 'fast-check'
import { PersistentMap, PersistentSet } from '../../streams/persistentMap.ts'

/** Pairs of words whose 32-bit FNV-1a hashes are equal. */
const COLLIDING = ['costarring', 'liquid', 'declinate', 'macallums', 'altarage', 'zinke', 'altarages', 'zinkes']
const anyKey = fc.oneof(fc.constantFrom(...COLLIDING), fc.integer({ min: 0, max: 200 }).map(String), fc.string())
const anyChange = fc.record({ key: anyKey, value: fc.option(fc.nat()) })

const sorted = <V>(entries: Iterable<readonly [string, V]>): (readonly [string, V])[] =>
  [...entries].toSorted(([a], [b]) => (a < b ? -1 : 1))

describe('a persistent map', () => {
  it('has the content of a Map after every change, and its older versions keep theirs', () =>
    fc.assert(
      fc.property(fc.array(anyChange, { maxLength: 200 }), changes => {
        const model = new Map<string, number>()
        let map = PersistentMap.of<string, number>()
        const versions = changes.map(({ key, value }) => {
          if (value === null) model.delete(key)
          else model.set(key, value)
          map = value === null ? map.without(key) : map.with(key, value)
          return { map, expected: new Map(model) }
        })
        for (const { map: version, expected } of versions) {
          expect(sorted(version)).to.deep.equal(sorted(expected))
          expect(version.size).to.equal(expected.size)
          for (const { key } of changes) {
            expect(version.get(key)).to.equal(expected.get(key))
            expect(version.has(key)).to.equal(expected.has(key))
          }
        }
      }),
    ))

  it('distinguishes keys with the same hash', () => {
    const map = PersistentMap.of(COLLIDING.map((key, n) => [key, n] as const))
    expect(COLLIDING.map(key => map.get(key))).to.deep.equal(COLLIDING.map((_, n) => n))
    const without = map.without('liquid').with('costarring', 100)
    expect([without.get('costarring'), without.has('liquid'), without.size]).to.deep.equal([100, false, 7])
    expect([map.get('costarring'), map.get('liquid'), map.size]).to.deep.equal([0, 1, 8])
  })

  it('is empty again, and as small as before, when every key is removed', () => {
    const keys = Array.from({ length: 5_000 }, (_, n) => `key-${n}`)
    const full = PersistentMap.of(keys.map(key => [key, key] as const))
    const empty = keys.reduce((map, key) => map.without(key), full)
    expect(empty).to.deep.equal(PersistentMap.of())
    expect(full.size).to.equal(5_000)
  })

  it('differs in a deep comparison when any value differs', () => {
    const one = PersistentMap.of([['a', 1] as const])
    expect(one).to.deep.equal(PersistentMap.of([['a', 1] as const]))
    expect(one).to.not.deep.equal(PersistentMap.of([['a', 2] as const]))
    expect(one).to.not.deep.equal(PersistentMap.of())
  })
})

describe('a persistent set', () => {
  it('has each key once, is the same object when nothing changes, and is an array in JSON', () => {
    const set = PersistentSet.of<string>(['a', 'b', 'a'])
    expect([set.size, set.has('a'), set.has('c')]).to.deep.equal([2, true, false])
    expect([set.with('a'), set.without('c')]).to.satisfy((same: unknown[]) => same.every(one => one === set))
    expect(JSON.parse(JSON.stringify(set.with('c')))).to.have.members(['a', 'b', 'c'])
    expect([...set.without('a')]).to.deep.equal(['b'])
  })
})
