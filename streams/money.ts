import { z } from 'zod'

/**
 * ISO 4217 codes by the number of digits after the decimal point. Codes without a minor unit (XAU, XXX, XTS …) are not
 * supported.
 */
const CODES_BY_EXPONENT: Readonly<Record<number, string>> = {
  0: 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF',
  2:
    'AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW ' +
    'CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS ' +
    'INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN ' +
    'NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC ' +
    'SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XCD XCG YER ZAR ZMW ZWG',
  3: 'BHD IQD JOD KWD LYD OMR TND',
  4: 'CLF UYW',
}

const EXPONENTS: ReadonlyMap<string, number> = new Map(
  Object.entries(CODES_BY_EXPONENT).flatMap(([exponent, codes]) =>
    codes.split(' ').map(code => [code, Number(exponent)] as const),
  ),
)

export const CURRENCIES: readonly string[] = [...EXPONENTS.keys()].toSorted()

/** The number of digits of the minor unit: 2 for USD, 0 for JPY. Throws for an unknown code, so validate first. */
export const exponentOf = (currency: string): number => {
  const exponent = EXPONENTS.get(currency)
  if (exponent === undefined) throw new RangeError(`No currency with a minor unit: ${currency}`)
  return exponent
}

const notACurrency = ({ input }: { readonly input?: unknown }): string | undefined =>
  input === undefined ? undefined : 'Must be an ISO 4217 currency code in capital letters, such as USD.'

export const currencySchema = z.enum(CURRENCIES as [string, ...string[]], { error: notACurrency }).meta({
  id: 'Currency',
  description: 'An ISO 4217 code, upper case, of a currency with a known exponent.',
})

/** The largest amount of one order, invoice or payment, in minor units. */
export const AMOUNT_MAX = 999_999_999_999n

/** Minor units: a JSON integer on the wire, a bigint in memory. */
export const minorUnits = z.codec(z.int().min(0).max(Number.MAX_SAFE_INTEGER), z.bigint(), {
  decode: units => BigInt(units),
  encode: units => Number(units),
})
