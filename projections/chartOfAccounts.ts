/**
 * The chart of accounts: every tenant has these accounts in each of its currencies, from their first posting on. A new
 * kind of account is one more row here; the events that it is posted from are in bookings.ts.
 */

export const ACCOUNT_TYPES = ['asset', 'liability', 'equity', 'revenue', 'expense'] as const
export type AccountType = (typeof ACCOUNT_TYPES)[number]

export const DIRECTIONS = ['debit', 'credit'] as const
export type Direction = (typeof DIRECTIONS)[number]

type ChartRow = {
  readonly name: string
  readonly type: AccountType
  /** The side on which the balance of the account grows. */
  readonly normal_side: Direction
  /** One account for each customer reference, instead of one for all. */
  readonly isPerCustomer?: true
}

export const CHART = {
  /**
   * The amounts that customers owe by approved invoices, less what they have paid or a deferred payment has pending.
   */
  receivables: { name: 'Receivables', type: 'asset', normal_side: 'debit', isPerCustomer: true },
  /** Deferred payments that were accepted and are neither settled nor failed. */
  'cash-in-clearing': { name: 'Cash in clearing', type: 'asset', normal_side: 'debit' },
  /** The amounts received. */
  cash: { name: 'Cash', type: 'asset', normal_side: 'debit' },
  /** Granted refunds. The ledger has no event for the payout, so their sum stays here. */
  'refunds-payable': { name: 'Refunds payable', type: 'liability', normal_side: 'credit' },
  /** Approved invoices, less voided ones and refunds. */
  revenue: { name: 'Revenue', type: 'revenue', normal_side: 'credit' },
  /** Receivables that were given up. No event of this build posts to it. */
  'write-offs': { name: 'Write-offs', type: 'expense', normal_side: 'debit' },
} as const satisfies Readonly<Record<string, ChartRow>>

export type AccountKind = keyof typeof CHART

/** The row of the chart. Throws for a kind that this build does not know. */
export const chartRow = (kind: string): ChartRow => {
  if (!Object.hasOwn(CHART, kind)) throw new Error(`The chart of accounts has no ${kind}.`)
  return CHART[kind as AccountKind]
}
