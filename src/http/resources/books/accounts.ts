import { z } from 'zod'
import {
  accountAt,
  accountsPage,
  type AccountAt,
  entriesPage,
  totalsAt,
  type TotalsAt,
} from '../../../../projections/books/queries.ts'
import { accountView, entryView, trialBalanceRow } from '../../../../projections/bookViews.ts'
import { type AnyRoute, route } from '../../route.ts'
import type { Call } from '../../services.ts'
import { currencySchema, resourceById, textSchema } from '../commonSchemas.ts'
import { listOf, pageQuery } from '../paging.ts'
import {
  accountCodeSchema,
  accountSchema,
  booksQuery,
  entrySchema,
  trialBalanceRowSchema,
  trialBalanceSchema,
} from './bookSchemas.ts'
import { type BookFilters, type PageAt, readBooksItem, readBooksPage } from './booksPage.ts'

const common = { method: 'GET', tag: 'Books', scope: 'ledger:read' } as const
const byCode = z.object({ code: accountCodeSchema })

type Listing = Call<unknown, { readonly customer_reference?: string | undefined }, unknown>

/** The token of the customer that is asked for; no account has the empty one. Undefined without the filter. */
const customerOf = async ({ query, principal, personalTexts }: Listing): Promise<string | undefined> => {
  const { customer_reference: text } = query
  if (text === undefined) return undefined
  return (await personalTexts.find({ tenant: principal.tenant, kind: 'customer_reference', text })) ?? ''
}

const accountPage =
  (customer?: string) =>
  (at: PageAt, { currency }: BookFilters) =>
    accountsPage({ ...at, currency, customer })
const keyOf = ({ code }: AccountAt): string => code

const listAccounts = route({
  ...common,
  path: '/accounts',
  operationId: 'list_accounts',
  summary: 'List the accounts that have entries, with their balances',
  query: z.object({
    ...pageQuery,
    ...booksQuery,
    currency: currencySchema.optional(),
    customer_reference: textSchema.optional().meta({ description: 'Only receivables of this customer.' }),
  }),
  ...listOf(accountSchema),
  order: ['code'],
  handler: async call => readBooksPage(call, { page: accountPage(await customerOf(call)), keyOf, render: accountView }),
})

const readAccount = route({
  ...common,
  path: '/accounts/{code}',
  operationId: 'read_account',
  summary: 'Read an account with its balances',
  params: byCode,
  query: z.object(booksQuery),
  isList: true,
  ...resourceById(accountSchema, 'The account.'),
  errors: ['precondition_invalid', 'projection_behind'],
  handler: call => readBooksItem(call, { ...accountOf(call.params.code), render: accountView }),
})

const listAccountEntries = route({
  ...common,
  path: '/accounts/{code}/entries',
  operationId: 'list_account_entries',
  summary: 'List the journal entries with a posting to the account, newest first',
  params: byCode,
  query: z.object({ ...pageQuery, ...booksQuery }),
  ...listOf(entrySchema),
  order: ['-position'],
  handler: call => readBooksPage(call, accountEntries(call.params.code)),
})

const accountOf = (code: string) => ({
  query: (tenant: string, position: bigint) => accountAt(tenant, code, position),
  detailIfAbsent:
    'This tenant has no account with this code. ' +
    'To list all codes, send GET /accounts; to list the codes of one customer, GET /accounts?customer_reference=….',
})

const accountEntries = (account: string) => ({
  page: ({ after, ...at }: PageAt) =>
    entriesPage({ ...at, account, before: after === undefined ? undefined : BigInt(after) }),
  keyOf: ({ position }: { readonly position: bigint }): string => position.toString(),
  render: entryView,
  ofItem: accountOf(account),
})

const totalsOf =
  ({
    bulk,
    principal: { tenant },
    query: { currency },
  }: Call<unknown, { readonly currency?: string | undefined }, unknown>) =>
  (position: bigint): Promise<readonly TotalsAt[]> => {
    const { text, values } = totalsAt({ tenant, position, currency })
    return bulk.sql<TotalsAt>(text, values)
  }

const readTrialBalance = route({
  ...common,
  path: '/trial-balance',
  operationId: 'read_trial_balance',
  summary: 'Read the debits and credits of every account',
  description:
    'In each currency total debits equal total credits (`totals`). All pages show the books at the same position.',
  query: z.object({ ...pageQuery, ...booksQuery, currency: currencySchema.optional() }),
  ...listOf(trialBalanceRowSchema),
  responses: {
    200: { description: 'A page of the list.', schema: trialBalanceSchema, headers: ['Link', 'Preference-Applied'] },
  },
  order: ['account'],
  handler: call => readBooksPage(call, { page: accountPage(), keyOf, render: trialBalanceRow, totals: totalsOf(call) }),
})

export const accountRoutes: readonly AnyRoute[] = [listAccounts, readAccount, listAccountEntries, readTrialBalance]
