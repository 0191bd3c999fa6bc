import type { Scope } from '../../../identity/principal.ts'

/** The consent page's sentence for each scope. A new scope is a compile error here. */
export const SENTENCES: Readonly<Record<Scope, string>> = {
  'orders:read': 'See your orders',
  'orders:write': 'Create, change and cancel orders',
  'invoices:read': 'See your invoices',
  'invoices:write': 'Raise and void invoices',
  'invoice:approve': 'Approve invoices in your name, so that they can be paid',
  'payments:read': 'See your payments',
  'payments:write': 'Make payments in your name',
  'payments:settle': 'Settle deferred payments, or declare them failed',
  'payments:refund': 'Give money back for payments that were made',
  'exports:read': 'Download exports of what it may see',
  'exports:write': 'Order exports of what it may see',
  'events:read': 'Follow everything that happens to what it may see',
  'events:subscribe': 'Have those events delivered elsewhere',
  'ledger:read': 'See the accounts, the journal and the trial balance',
  'audit:read': 'See who was allowed and refused what',
  'keys:manage': 'Issue and revoke API keys',
  'projections:operate': 'Rebuild read models, as an operator',
  'audit:installation': 'See what operators did to the installation',
}
