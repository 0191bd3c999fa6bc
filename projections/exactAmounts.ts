/** Sums beyond 2^53 - 1 in JSON: its integers have any size, and the numbers of JavaScript have not. */

/**
 * The sum as a view has it. Beyond the safe integers it stays a bigint, which the type conceals, since every schema has an integer:
 * `exactJson` writes its digits, and so do the files of exports.
 */
export function exactAmount(sum: bigint): number
export function exactAmount(sum: bigint): number | bigint {
  const rounded = Number(sum)
  return Number.isSafeInteger(rounded) ? rounded : sum
}

/** TypeScript 5 does not know the function of ECMAScript 2026. */
const rawJson = (digits: string): unknown => {
  const write: unknown = Reflect.get(JSON, 'rawJSON')
  return typeof write === 'function' ? (Reflect.apply(write, JSON, [digits]) as unknown) : digits
}

/** The JSON text of a value, with the exact digits of each bigint. A replacer is slow, so it is called where there is one. */
export const exactJson = (value: unknown): string => {
  try {
    return JSON.stringify(value)
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    return JSON.stringify(value, (_name, member: unknown) =>
      typeof member === 'bigint' ? rawJson(String(member)) : member,
    )
  }
}
