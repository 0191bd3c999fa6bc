import { createHash } from 'node:crypto'
import type { AccountCodeOf } from '../../projections/bookEntries.ts'
import { chartRow } from '../../projections/chartOfAccounts.ts'

/**
 * The codes of accounts: `cash.USD`, `receivables.USD.prs_…`, which has the token of a customer reference
 * (personalTexts.ts). They never change, and need no escape in a URL: of a reference itself, which events of earlier
 * builds have, bytes other than letters, digits, `.`, `_` and `-` are written as `~` and two hexadecimal digits.
 */

/**
 * Characters of a customer reference in a code. The end of a longer one is replaced by a hash, which begins with `~~`.
 */
const CUSTOMER_CHARS_MAX = 100
const KEPT_CHARS = 40
const HASH_CHARS = 32
/** An escape that was cut in two. */
const CUT_ESCAPE = /~[0-9A-F]?$/

export const ACCOUNT_CODE = /^[a-z-]{1,40}\.[A-Z]{3}(\.[A-Za-z0-9._~-]{1,120})?$/

const escaped = (text: string): string =>
  text.replace(/[^A-Za-z0-9._-]/gu, character =>
    [...Buffer.from(character)].map(byte => `~${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(''),
  )

const customerPart = (customer: string): string => {
  const whole = escaped(customer)
  if (whole.length <= CUSTOMER_CHARS_MAX) return whole
  const hash = createHash('sha256').update(customer).digest('hex').slice(0, HASH_CHARS)
  return `${whole.slice(0, KEPT_CHARS).replace(CUT_ESCAPE, '')}~~${hash}`
}

/** Orders without a customer share an account. */
export const accountCode: AccountCodeOf = (kind, currency, customer) =>
  chartRow(kind).isPerCustomer && customer !== null
    ? `${kind}.${currency}.${customerPart(customer)}`
    : `${kind}.${currency}`
