import { Task } from '@lit/task'
import { html, nothing } from 'lit'
import type { Account, Closing, JournalEntry, Payment } from '../../../scripts/client/src/generated.ts'
import { curlOf, read, readAll } from '../api.ts'
import { downloadCsv } from '../csv.ts'
import { grid } from '../elements/grid.ts'
import '../elements/plot.ts'
import type { Plotted } from '../elements/plot.ts'
import { copyButton, define, PlacedView, shown } from '../elements/view.ts'
import { count, date, money, moneyText, state, time } from '../format.ts'
import { hrefOf, place, setQuery } from '../router.ts'
import { may } from '../session.ts'

/** The books at any moment, the ageing of what is owed, and what became of payments. */

const DAY_MS = 86_400_000
const ENTRIES_MAX = 1_000
const ROWS_MAX = 2_000
const DAYS_MAX = 3_650
const LISTED_MAX = 10
/** How far the slider reaches for those who may not see when the first fact was. */
const DAYS_WITHOUT_FACTS = 90

/** Days from today back to the first fact. */
const daysBack = (first: string | undefined): number =>
  first === undefined ? 1 : Math.max(1, Math.ceil((Date.now() - Date.parse(first)) / DAY_MS))

type Cents = { readonly currency: string; readonly exponent: number }
const text = (amount: number, { currency, exponent }: Cents): string => moneyText(amount, currency, exponent)

/** The balance of the account after each entry, backwards from the present one. `entries` are newest first. */
const balancesOf = (account: Account, entries: readonly JournalEntry[]): Plotted => {
  let balance = account.balances.posted
  const points = entries.map(({ at, postings }) => {
    const point = { at: Date.parse(at) / 1_000, balance }
    for (const { account: code, direction, amount } of postings)
      if (code === account.code) balance -= direction === account.normal_side ? amount : -amount
    return point
  })
  points.reverse()
  return {
    title: `Balance of ${account.name}`,
    at: points.map(({ at }) => at),
    series: [{ label: account.code, values: points.map(point => point.balance) }],
    text: value => text(value, account),
    isStepped: true,
  }
}

const balanceOf = async (code: string, as_of: string | undefined): Promise<Plotted> => {
  const input = { path: { code }, query: { as_of } }
  const [account, entries] = await Promise.all([
    read('GET /accounts/{code}', input),
    readAll('GET /accounts/{code}/entries', input, ENTRIES_MAX),
  ])
  return balancesOf(account, entries.items)
}

const AGES = ['not due', '1–30 days', '31–60 days', '61–90 days', 'over 90 days'] as const

const ageOf = (due: string, now: number): number => {
  const days = Math.floor((now - Date.parse(due)) / DAY_MS)
  return days < 1 ? 0 : Math.min(4, Math.ceil(days / 30))
}

type Sum = Cents & { readonly cells: { count: number; amount: number }[] }

/** Sums by currency, in as many cells as `place` chooses from. */
const sumsOf = <T extends Cents>(
  items: readonly T[],
  cells: number,
  place: (item: T) => number,
  amount: (item: T) => number,
) => {
  const sums = new Map<string, Sum>()
  for (const item of items) {
    const { currency, exponent } = item
    const sum = sums.get(currency) ?? {
      currency,
      exponent,
      cells: Array.from({ length: cells }, () => ({ count: 0, amount: 0 })),
    }
    sums.set(currency, sum)
    const cell = sum.cells[place(item)]
    if (cell) {
      cell.count += 1
      cell.amount += amount(item)
    }
  }
  return [...sums.values()]
}

type Table = {
  readonly title: string
  readonly file: string
  readonly heads: readonly string[]
  readonly sums: readonly Sum[]
  readonly isPartial: boolean
}

const sumsTable = ({ title, file, heads, sums, isPartial }: Table): unknown => {
  const writeCsv = (): void =>
    downloadCsv(
      file,
      ['currency', ...heads.flatMap(head => [`${head} count`, `${head} amount`])],
      sums.map(({ currency, cells }) => [currency, ...cells.flatMap(cell => [cell.count, cell.amount])]),
    )
  return html`<section><div class="tools"><h2>${title}</h2><span class="spring"></span><button type="button" class="quiet" @click=${writeCsv}>CSV</button></div>
    ${isPartial ? html`<p class="soft">Of the newest ${count(ROWS_MAX)}; an export has them all.</p>` : nothing}
    ${
      sums.length === 0
        ? html`<p class="empty">There is nothing to sum.</p>`
        : html`<div class="scroll" tabindex="0" role="region" aria-label=${title}><table><thead><tr><th scope="col">Currency</th>
            ${heads.map(head => html`<th scope="col" class="number">${head}</th>`)}</tr></thead>
          <tbody>${sums.map(
            sum =>
              html`<tr><th scope="row">${sum.currency}</th>${sum.cells.map(
                (cell, index) =>
                  html`<td class="number" data-label=${heads[index] ?? ''}>${money(cell.amount, sum.currency, sum.exponent)} <small>${count(cell.count)}</small></td>`,
              )}</tr>`,
          )}</tbody></table></div>`
    }</section>`
}

const PAYMENT_STATES = ['pending', 'failed', 'succeeded', 'partially_refunded', 'refunded'] as const

const RECONCILIATION = ['settled', 'failed', 'waits up to 3 days', 'up to 10 days', 'longer', 'no reference to match']
const WAITS_DAYS = [3, 10]

/** The column of a deferred payment, which a bank statement settles by the line with its reference. */
const reconciliationOf = ({ state: now, reference, created_at }: Payment): number => {
  if (now !== 'pending') return now === 'failed' ? 1 : 0
  if (reference === null) return RECONCILIATION.length - 1
  const days = (Date.now() - Date.parse(created_at)) / DAY_MS
  return 2 + WAITS_DAYS.filter(limit => days > limit).length
}

const reconciliation = (payments: readonly Payment[], isPartial: boolean): unknown => {
  const deferred = payments.filter(({ settlement }) => settlement === 'deferred')
  const longest = deferred.filter(one => reconciliationOf(one) > 2).toReversed()
  return html`${sumsTable({
    title: 'Bank reconciliation of deferred payments',
    file: 'bank-reconciliation',
    heads: RECONCILIATION,
    sums: sumsOf(deferred, RECONCILIATION.length, reconciliationOf, one => one.amount),
    isPartial,
  })}
  ${longest.slice(0, LISTED_MAX).map(one => html`<p><a class="id" href=${hrefOf('case', one.id)}>${one.id}</a> ${money(one.amount, one.currency, one.exponent)} ${one.reference === null ? 'has no reference' : html`for <bdi>${one.reference}</bdi>`}, since ${time(one.created_at)}</p>`)}`
}

const closings = (): unknown =>
  grid<Closing>({
    operation: 'GET /periods',
    items: 'closings',
    name: 'periods',
    empty: 'No period was ever closed; ledger periods close does it.',
    columns: [
      { label: 'Closed through', show: row => date(row.through), cell: row => row.through },
      { label: 'At', show: row => time(row.closed_at), cell: row => row.closed_at },
      { label: 'By', show: row => html`<bdi>${row.closed_by}</bdi>`, cell: row => row.closed_by },
      { label: 'Reason', show: row => html`<bdi class="text">${row.reason}</bdi>`, cell: row => row.reason },
      { label: 'Complete to', isNumber: true, show: row => row.complete_to, cell: row => row.complete_to },
    ],
  })

export class MoneyPage extends PlacedView {
  static override properties = { dragged: { state: true } }
  /** Days back while the slider moves, before its value is in the address. */
  declare private dragged: number | undefined

  private back(): number {
    return Number(place().query.get('back') ?? 0)
  }

  /** The end of the day that many days ago; now for none. */
  private asOf(): string | undefined {
    const back = this.back()
    return back === 0 ? undefined : new Date(Date.now() - back * DAY_MS).toISOString().replace(/T.*/, 'T23:59:59Z')
  }

  private readonly firstDay = new Task(this, {
    args: () => [],
    task: async () => {
      if (!may('events:read')) return DAYS_WITHOUT_FACTS
      const { items } = await read('GET /events', { query: { limit: 1 } })
      return Math.min(DAYS_MAX, daysBack(items[0]?.time))
    },
  })

  /** The trial balance, and the history of the chosen account up to then. */
  private readonly books = new Task(this, {
    args: () => [this.asOf(), place().query.get('account') ?? ''] as const,
    task: async ([as_of, chosen]) => {
      if (!may('ledger:read')) return undefined
      const { totals, page } = await read('GET /trial-balance', { query: { as_of, limit: 1 } })
      const { items } = await readAll('GET /trial-balance', { query: { as_of } }, ROWS_MAX)
      const code = items.find(
        ({ account }) => account === chosen || (chosen === '' && account.startsWith('cash.')),
      )?.account
      return { items, totals, position: page.as_of_position, plotted: code && (await balanceOf(code, as_of)) }
    },
  })

  private readonly owed = new Task(this, {
    args: () => [],
    task: async () => {
      if (!may('invoices:read')) return undefined
      const found = await Promise.all(
        ['approved', 'partially_paid'].map(one => readAll('GET /invoices', { query: { state: one } }, ROWS_MAX)),
      )
      return {
        items: found.flatMap(({ items }) => items),
        hasMore: found.some(({ hasMore }) => hasMore),
      }
    },
  })

  private readonly payments = new Task(this, {
    args: () => [],
    task: async () => (may('payments:read') ? readAll('GET /payments', {}, ROWS_MAX) : undefined),
  })

  private slider(): unknown {
    const max = this.firstDay.value ?? DAYS_WITHOUT_FACTS
    const back = this.dragged ?? this.back()
    const label =
      back === 0 ? 'now' : `the end of ${new Date(Date.now() - back * DAY_MS).toISOString().slice(0, 10)} UTC`
    return html`<label class="slider">The books as of ${label}
      <input type="range" min=${-max} max="0" .value=${String(-back)} aria-valuetext=${label}
        @input=${({ target }: Event) => {
          this.dragged = -Number((target as HTMLInputElement).value)
        }}
        @change=${({ target }: Event) => {
          this.dragged = undefined
          const days = -Number((target as HTMLInputElement).value)
          setQuery({ back: days === 0 ? '' : String(days) }, 'replace')
        }} /></label>`
  }

  private trialBalance({ items, totals, position }: NonNullable<typeof this.books.value>): unknown {
    const writeCsv = (): void =>
      downloadCsv(
        'trial-balance',
        ['account', 'name', 'customer', 'currency', 'exponent', 'debits', 'credits'],
        items.map(row => [
          row.account,
          row.account_name,
          row.customer_reference,
          row.currency,
          row.exponent,
          row.debits,
          row.credits,
        ]),
      )
    return html`<div class="tools"><h2>Trial balance</h2><span class="soft">at position ${position}</span><span class="spring"></span>
        ${copyButton(() => curlOf('GET /trial-balance', { query: { as_of: this.asOf() } }), 'Copy as curl')}<button type="button" class="quiet" @click=${writeCsv}>CSV</button></div>
      ${items.length === 0 ? html`<p class="empty">The books had no entry then.</p>` : nothing}
      <div class="scroll tall" ?hidden=${items.length === 0} tabindex="0" role="region" aria-label="Trial balance"><table>
        <thead><tr><th scope="col">Account</th><th scope="col">Name</th><th scope="col">Customer</th><th scope="col" class="number">Debits</th><th scope="col" class="number">Credits</th></tr></thead>
        <tbody>${items.map(
          row => html`<tr><td data-label="Account"><a class="id" href=${hrefOf('money', '', { ...Object.fromEntries(place().query), account: row.account })}>${row.account}</a></td>
            <td data-label="Name">${row.account_name}</td><td data-label="Customer"><bdi class="text">${row.customer_reference ?? '–'}</bdi></td>
            <td class="number" data-label="Debits">${money(row.debits, row.currency, row.exponent)}</td><td class="number" data-label="Credits">${money(row.credits, row.currency, row.exponent)}</td></tr>`,
        )}</tbody>
        <tfoot>${totals.map(
          total => html`<tr><th scope="row" colspan="3">Total ${total.currency} ${state(total.debits === total.credits ? 'balanced' : 'failed')}</th>
            <td class="number" data-label="Debits">${money(total.debits, total.currency, total.exponent)}</td><td class="number" data-label="Credits">${money(total.credits, total.currency, total.exponent)}</td></tr>`,
        )}</tfoot></table></div>`
  }

  private ageing(owed: NonNullable<typeof this.owed.value>): unknown {
    const now = Date.now()
    const overdue = owed.items.filter(({ due_date }) => ageOf(due_date, now) > 0)
    return html`${sumsTable({
      title: 'What is owed, by age',
      file: 'ageing',
      heads: AGES,
      sums: sumsOf(
        owed.items,
        AGES.length,
        ({ due_date }) => ageOf(due_date, now),
        one => one.amount_outstanding,
      ),
      isPartial: owed.hasMore,
    })}
    ${overdue.slice(0, LISTED_MAX).map(one => html`<p><a class="id" href=${hrefOf('case', one.id)}>${one.id}</a> ${money(one.amount_outstanding, one.currency, one.exponent)} was due on ${date(one.due_date)}, created ${time(one.created_at)}</p>`)}`
  }

  protected override render(): unknown {
    const byState = (item: Payment): number => PAYMENT_STATES.indexOf(item.state)
    return html`<h1>Money</h1>
      ${
        may('ledger:read')
          ? html`${this.slider()}
            ${shown(this.books, books => (books?.plotted ? html`<time-plot .plotted=${books.plotted}></time-plot>` : nothing), { isOfSubject: true })}`
          : nothing
      }
      ${may('invoices:read') ? shown(this.owed, owed => (owed ? this.ageing(owed) : nothing)) : nothing}
      ${
        may('payments:read')
          ? shown(this.payments, found =>
              found
                ? html`${sumsTable({
                    title: 'What became of payments',
                    file: 'payments-by-state',
                    heads: PAYMENT_STATES.map(name => name.replaceAll('_', ' ')),
                    sums: sumsOf(found.items, PAYMENT_STATES.length, byState, one => one.amount),
                    isPartial: found.hasMore,
                  })}${reconciliation(found.items, found.hasMore)}`
                : nothing,
            )
          : nothing
      }
      ${may('ledger:read') ? shown(this.books, books => (books ? this.trialBalance(books) : nothing), { isOfSubject: true }) : nothing}
      ${may('ledger:read') ? html`<h2>Closed periods</h2>${closings()}` : nothing}`
  }
}

define('money-page', MoneyPage)
