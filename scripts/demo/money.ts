import { exponentOf } from '../../streams/money.ts'

const DECIMAL = /^(\d{1,12})(?:\.(\d+))?$/

/** Parsed by digits, since a float cannot hold 1.98. Throws a RangeError for signs, exponents and too many digits. */
export const minorUnitsOf = (decimal: string, currency: string): bigint => {
  const exponent = exponentOf(currency)
  const [, whole, fraction = ''] = DECIMAL.exec(decimal) ?? []
  if (whole === undefined || fraction.length > exponent)
    throw new RangeError(`${JSON.stringify(decimal)} is no amount in ${currency}.`)
  return BigInt(whole + fraction.padEnd(exponent, '0'))
}

export const decimalOf = (amount: bigint, currency: string): string => {
  const exponent = exponentOf(currency)
  const digits = (amount < 0n ? -amount : amount).toString().padStart(exponent + 1, '0')
  const whole = digits.slice(0, digits.length - exponent)
  return `${amount < 0n ? '-' : ''}${whole}${exponent === 0 ? '' : `.${digits.slice(-exponent)}`}`
}
