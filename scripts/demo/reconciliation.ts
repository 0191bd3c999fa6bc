import { aligned } from '../ledger/table.ts'
import type { LedgerClient } from '../client/src/index.ts'
import type { Fact } from './factReader.ts'
import { decimalOf } from './money.ts'
import { CURRENCY, type Sums, WHOLE_PAGES } from './plan.ts'
import type { InvoiceRun } from './planExecution.ts'

/** The ids of this run. The tenant may hold other objects, for instance of a longer run before. */
export type DemoIds = { readonly orders: ReadonlySet<string>; readonly invoices: ReadonlySet<string> }

export const demoIdsOf = (runs: readonly InvoiceRun[]): DemoIds => ({
  orders: new Set(runs.map(({ orderId }) => orderId)),
  invoices: new Set(runs.map(({ invoiceId }) => invoiceId)),
})

const SUCCEEDED_STATES: ReadonlySet<string> = new Set(['succeeded', 'partially_refunded', 'refunded'])
const APPROVED_STATES: ReadonlySet<string> = new Set(['approved', 'partially_paid', 'paid'])

const total = <T>(items: readonly T[], amount: (item: T) => number): bigint =>
  items.reduce((sum, item) => sum + BigInt(amount(item)), 0n)

/** Open amounts come from the invoices, paid ones from the payments, so that the read models check each other. */
export const sumsOfLists = async (ledger: LedgerClient, ids: DemoIds): Promise<Sums> => {
  const [allOrders, allInvoices, allPayments] = await Promise.all([
    Array.fromAsync(ledger.list('GET /orders', WHOLE_PAGES)),
    Array.fromAsync(ledger.list('GET /invoices', WHOLE_PAGES)),
    Array.fromAsync(ledger.list('GET /payments', WHOLE_PAGES)),
  ])
  const invoices = allInvoices.filter(({ id, state }) => ids.invoices.has(id) && APPROVED_STATES.has(state))
  const payments = allPayments.filter(
    payment => ids.invoices.has(payment.invoice_id) && SUCCEEDED_STATES.has(payment.state),
  )
  return {
    orders: allOrders.filter(({ id }) => ids.orders.has(id)).length,
    invoices: invoices.length,
    payments: payments.length,
    settled: invoices.filter(({ state }) => state === 'paid').length,
    refunds: payments.filter(({ refunded_amount }) => refunded_amount > 0).length,
    invoiced: total(invoices, ({ total_amount }) => total_amount),
    paid: total(payments, ({ amount }) => amount),
    open: total(invoices, ({ total_amount, amount_paid }) => total_amount - amount_paid),
    refunded: total(invoices, ({ amount_refunded }) => amount_refunded),
  }
}

export const sumsOfFacts = (facts: readonly Fact[], ids: DemoIds): Sums => {
  const of = (type: string, isOurs: (fact: Fact) => boolean) =>
    facts.filter(fact => fact.type === type && isOurs(fact)).map(({ data }) => data)
  const approved = of('invoice.approved', ({ subject }) => ids.invoices.has(subject))
  const payments = of('payment.succeeded', ({ data }) => ids.invoices.has(data.invoice_id ?? ''))
  const refunds = of('payment.refunded', ({ data }) => ids.invoices.has(data.invoice_id ?? ''))
  const invoiced = total(approved, ({ amount_due = 0 }) => amount_due)
  const paid = total(payments, ({ amount = 0 }) => amount)
  return {
    orders: of('order.created', ({ subject }) => ids.orders.has(subject)).length,
    invoices: approved.length,
    payments: payments.length,
    settled: of('invoice.paid', ({ subject }) => ids.invoices.has(subject)).length,
    refunds: refunds.length,
    invoiced,
    paid,
    open: invoiced - paid,
    refunded: total(refunds, ({ refund_amount = 0 }) => refund_amount),
  }
}

export type Reconciliation = { readonly planned: Sums; readonly lists: Sums; readonly facts: Sums }

const ROWS: readonly (readonly [keyof Sums, string])[] = [
  ['orders', 'orders'],
  ['invoices', 'invoices approved'],
  ['payments', 'payments'],
  ['settled', 'invoices paid in full'],
  ['refunds', 'payments refunded'],
  ['invoiced', `invoiced, ${CURRENCY}`],
  ['paid', `paid, ${CURRENCY}`],
  ['open', `open, ${CURRENCY}`],
  ['refunded', `refunded, ${CURRENCY}`],
]

const shown = (sum: number | bigint): string => (typeof sum === 'bigint' ? decimalOf(sum, CURRENCY) : String(sum))

export const tableOf = ({ planned, lists, facts }: Reconciliation): readonly string[] => {
  const rows = ROWS.map(([name, label]) => [label, shown(planned[name]), shown(lists[name]), shown(facts[name])])
  return aligned([['', 'planned', 'by the lists', 'by the facts'], ...rows], 'right')
}

/** One sentence for each sum that differs from the plan. */
export const differencesIn = ({ planned, lists, facts }: Reconciliation): readonly string[] => {
  const views = [
    ['the lists', lists],
    ['the facts', facts],
  ] as const
  return ROWS.flatMap(([name, label]) =>
    views
      .filter(([, sums]) => sums[name] !== planned[name])
      .map(([view, sums]) => `${label}: planned ${shown(planned[name])}, ${view} say ${shown(sums[name])}.`),
  )
}
