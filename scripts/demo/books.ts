import type { LedgerClient, Posting } from '../client/src/index.ts'
import { decimalOf } from './money.ts'
import { CURRENCY, type Sums, WHOLE_PAGES } from './plan.ts'

const kindOf = ({ account }: Posting): string => account.split('.')[0] ?? account

/** `invoices`: those of this run; the tenant may have others. */
export const readBooks = async (ledger: LedgerClient, invoices: ReadonlySet<string>) => {
  const all = await Array.fromAsync(ledger.list('GET /trial-balance', WHOLE_PAGES))
  const rows = all.filter(({ currency }) => currency === CURRENCY)
  const entries = await Array.fromAsync(ledger.list('GET /journal-entries', WHOLE_PAGES))
  const balances: Record<string, bigint> = {}
  for (const posting of entries
    .filter(({ invoice_id }) => invoices.has(invoice_id))
    .flatMap(({ postings }) => postings)) {
    const amount = posting.direction === 'debit' ? BigInt(posting.amount) : -BigInt(posting.amount)
    balances[kindOf(posting)] = (balances[kindOf(posting)] ?? 0n) + amount
  }
  return {
    accounts: rows.length,
    /** `debits`, `credits`: the sums of all of the tenant in the demo's currency. */
    debits: rows.reduce((sum, { debits }) => sum + BigInt(debits), 0n),
    credits: rows.reduce((sum, { credits }) => sum + BigInt(credits), 0n),
    /** Debits minus credits by the first part of the account's code. */
    balances,
  }
}
export type DemoBooks = Awaited<ReturnType<typeof readBooks>>

const money = (amount: bigint): string => decimalOf(amount, CURRENCY)

/** The accounts between which an invoiced amount moves until it is paid. */
const INVOICED = ['receivables', 'cash', 'cash-in-clearing', 'write-offs'] as const

const balanceOf = ({ balances }: DemoBooks, kind: string): bigint => balances[kind] ?? 0n

const invoicedIn = (books: DemoBooks): bigint => INVOICED.reduce((sum, kind) => sum + balanceOf(books, kind), 0n)

export const bookLines = (books: DemoBooks): readonly string[] => [
  `trial balance over ${books.accounts} accounts: ${CURRENCY} ${money(books.debits - books.credits)}`,
  `${INVOICED.map(kind => `${kind} ${money(balanceOf(books, kind))}`).join(' + ')} = ${money(invoicedIn(books))} ${CURRENCY}`,
]

/** One sentence for each balance that is not as planned. */
export const differencesInBooks = (books: DemoBooks, planned: Sums): readonly string[] => {
  const expected = [
    ['the debits minus the credits', 0n, books.debits - books.credits],
    [INVOICED.join(' + '), planned.invoiced, invoicedIn(books)],
    ['cash', planned.paid, balanceOf(books, 'cash')],
    ['receivables', planned.open, balanceOf(books, 'receivables')],
    ['refunds-payable', planned.refunded, -balanceOf(books, 'refunds-payable')],
    ['revenue', planned.invoiced - planned.refunded, -balanceOf(books, 'revenue')],
  ] as const
  return expected
    .filter(([, target, actual]) => target !== actual)
    .map(([name, target, actual]) => `The books: ${name} must be ${money(target)}, and is ${money(actual)}.`)
}
