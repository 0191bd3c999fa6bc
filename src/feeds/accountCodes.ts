import type { AccountCodeOf } from '../../projections/bookEntries.ts'
import { chartRow } from '../../projections/chartOfAccounts.ts'

/**
 * `cash.USD`, or `receivables.USD.prs_…` with the token of a customer reference. They never change, and need no escape.
 */

export const ACCOUNT_CODE = /^[a-z-]{1,40}\.[A-Z]{3}(\.[A-Za-z0-9._~-]{1,120})?$/

/** Orders without a customer share an account. */
export const accountCode: AccountCodeOf = (kind, currency, customer) =>
  chartRow(kind).isPerCustomer && customer !== null ? `${kind}.${currency}.${customer}` : `${kind}.${currency}`
