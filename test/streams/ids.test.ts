import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import fc from 'fast-check'
import { CROCKFORD, ID_PREFIXES, idFromBytes, type IdPrefix, idSchema, isId, withPrefix } from '../../streams/ids.ts'
import { partsOf, streamOf } from '../../streams/aggregate.ts'
import { aggregates, isCategory } from '../../streams/index.ts'

/** The pattern of ids in the contract, with the prefixes of streams that are not resources. */
const CONTRACT = /^(ord|inv|pay|op|sub|key|ref|rfd|acc|man|ten|bnd|sec|ent|per|prk|voc|prs|prf)_[0-9A-HJKMNP-TV-Z]{26}$/
const RANDOM_IDS = 10_000
const SUFFIX = '0123456789ABCDEFGHJKMNPQRS'

describe('ids', () => {
  it(`match the pattern of the contract, ${RANDOM_IDS} of them, without a repetition`, () => {
    const ids = Array.from({ length: RANDOM_IDS }, (_, n) =>
      idFromBytes(ID_PREFIXES[n % ID_PREFIXES.length] ?? 'ord', randomBytes(17)),
    )
    for (const id of ids) expect(id).to.match(CONTRACT)
    expect(new Set(ids).size).to.equal(RANDOM_IDS)
  })

  it('use every character of the alphabet at every place', () => {
    const ids = Array.from({ length: RANDOM_IDS }, () => idFromBytes('pay', randomBytes(17)).slice('pay_'.length))
    for (let place = 0; place < 26; place += 1)
      expect(new Set(ids.map(id => id[place])).size, `place ${place}`).to.equal(CROCKFORD.length)
  })

  it('are the first 130 bits of their bytes, five to a character', () =>
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 17, maxLength: 40 }), bytes => {
        const bits = [...bytes].map(byte => byte.toString(2).padStart(8, '0')).join('')
        const suffix = Array.from({ length: 26 }, (_, n) => CROCKFORD[Number.parseInt(bits.slice(n * 5, n * 5 + 5), 2)])
        expect(idFromBytes('ord', bytes)).to.equal(`ord_${suffix.join('')}`)
      }),
    ))

  it('need seventeen bytes', () => expect(() => idFromBytes('ord', new Uint8Array(16))).to.throw(RangeError))

  for (const prefix of ID_PREFIXES)
    it(`of ${prefix} are distinguished from all others`, () => {
      const own = `${prefix}_${SUFFIX}` as const
      expect(isId(prefix, own)).to.equal(true)
      expect(idSchema(prefix).parse(own)).to.equal(own)
      for (const other of ID_PREFIXES) expect(isId(other, own)).to.equal(other === prefix)
      for (const other of ID_PREFIXES) expect(idSchema(other).safeParse(own).success).to.equal(other === prefix)
    })

  const wrong = {
    'a character short': `ord_${SUFFIX.slice(1)}`,
    'a character long': `ord_${SUFFIX}0`,
    'in lower case': `ord_${SUFFIX.toLowerCase()}`,
    'without its prefix': SUFFIX,
    'with a hyphen': `ord-${SUFFIX}`,
    'with a line feed behind it': `ord_${SUFFIX}\n`,
    'with a space before it': ` ord_${SUFFIX}`,
    twice: `ord_${SUFFIX}ord_${SUFFIX}`,
    ...Object.fromEntries(
      ['I', 'L', 'O', 'U', '_', 'Ä', '%'].map(letter => [
        `with the letter ${letter}`,
        `ord_${letter}${SUFFIX.slice(1)}`,
      ]),
    ),
  }
  for (const [how, text] of Object.entries(wrong))
    it(`are refused ${how}`, () => {
      expect(isId('ord', text)).to.equal(false)
      expect(idSchema('ord').safeParse(text).success).to.equal(false)
    })

  it('of an operation are those of its payment under another prefix', () =>
    expect(withPrefix('op', `pay_${SUFFIX}`)).to.equal(`op_${SUFFIX}`))
})

describe('streams', () => {
  it('are named by category and id, and parsed back into them', () => {
    for (const { category, prefix } of Object.values<{ category: string; prefix: IdPrefix }>(aggregates)) {
      const stream = streamOf({ category }, `${prefix}_${SUFFIX}`)
      expect(partsOf(stream)).to.deep.equal({ category, id: `${prefix}_${SUFFIX}` })
    }
  })

  it('have a category without a hyphen, a prefix of their own, and are listed by it', () => {
    for (const [name, { category }] of Object.entries(aggregates))
      expect(category)
        .to.equal(name)
        .and.to.match(/^[a-z][a-zA-Z]*$/)
    const prefixes = Object.values(aggregates).map(({ prefix }) => prefix)
    expect(new Set(prefixes).size).to.equal(prefixes.length)
  })

  it('of other programs are distinguished from those of the ledger, also with names that every object inherits', () => {
    expect(isCategory('invoice')).to.equal(true)
    for (const name of ['constructor', 'toString', '__proto__', 'Invoice', '$et', ''])
      expect(isCategory(name)).to.equal(false)
  })
})
