import { expect } from 'chai'
import { AMOUNT_MAX, CURRENCIES, currencySchema, exponentOf, minorUnits } from '../../streams/money.ts'

/** The exponents that ISO 4217 gives, apart from the many with two. */
const OTHER_EXPONENTS: Readonly<Record<string, number>> = {
  ...Object.fromEntries(
    'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF'.split(' ').map(code => [code, 0]),
  ),
  ...Object.fromEntries('BHD IQD JOD KWD LYD OMR TND'.split(' ').map(code => [code, 3])),
  CLF: 4,
  UYW: 4,
}

describe('money', () => {
  for (const currency of CURRENCIES)
    it(`has ${OTHER_EXPONENTS[currency] ?? 2} digits after the point in ${currency}`, () => {
      expect(exponentOf(currency)).to.equal(OTHER_EXPONENTS[currency] ?? 2)
      expect(currencySchema.parse(currency)).to.equal(currency)
    })

  it('has every code once, in order', () => {
    expect(CURRENCIES).to.deep.equal([...new Set(CURRENCIES)].toSorted())
    expect(CURRENCIES).to.have.length.greaterThan(150)
    for (const code of Object.keys(OTHER_EXPONENTS)) expect(CURRENCIES).to.include(code)
  })

  it('has two digits in currencies whose smallest coin is a fifth', () => {
    expect(exponentOf('MGA')).to.equal(2)
    expect(exponentOf('MRU')).to.equal(2)
  })

  const noMinorUnit = ['XAU', 'XAG', 'XPD', 'XPT', 'XXX', 'XTS', 'XDR', 'XSU', 'XUA', 'XBA', 'XBB', 'XBC', 'XBD']
  for (const code of [...noMinorUnit, 'usd', 'Usd', ' USD', 'USD ', 'US', 'USDX', '', '840', 'ABC', 'constructor'])
    it(`is not ${JSON.stringify(code)}`, () => {
      expect(currencySchema.safeParse(code).success).to.equal(false)
      expect(() => exponentOf(code)).to.throw(RangeError)
    })

  describe('in minor units', () => {
    for (const units of [0, 1, 999_999_999_999, Number.MAX_SAFE_INTEGER])
      it(`is encoded and decoded exactly at ${units}`, () => {
        expect(minorUnits.decode(units)).to.equal(BigInt(units))
        expect(minorUnits.encode(BigInt(units))).to.equal(units)
      })

    for (const wrong of [
      -1,
      0.5,
      Number.POSITIVE_INFINITY,
      Number.NaN,
      Number.MAX_SAFE_INTEGER + 1,
      '1',
      null,
      true,
      1n,
    ])
      it(`is not ${typeof wrong} ${wrong} where it is stored`, () =>
        expect(minorUnits.safeParse(wrong).success).to.equal(false))

    // The last one would be rounded to another integer as a JSON number.
    for (const wrong of [-1n, BigInt(Number.MAX_SAFE_INTEGER) + 1n, BigInt(Number.MAX_SAFE_INTEGER) + 2n])
      it(`is not stored at ${wrong}`, () => expect(minorUnits.safeEncode(wrong).success).to.equal(false))

    it('is stored at the largest amount, and at a sum of thousands of them', () => {
      expect(minorUnits.encode(AMOUNT_MAX)).to.equal(999_999_999_999)
      expect(minorUnits.encode(AMOUNT_MAX * 9_000n)).to.equal(8_999_999_999_991_000)
    })
  })
})
