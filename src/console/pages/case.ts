import { Task, TaskStatus } from '@lit/task'
import { html, nothing, type PropertyValues, type TemplateResult } from 'lit'
import type { Payment } from '../../../scripts/client/src/generated.ts'
import { type Column, grid, moneyColumn } from '../elements/grid.ts'
import { stateDiagram } from '../elements/states.ts'
import { copyButton, define, failure, PlacedView, raw, shown } from '../elements/view.ts'
import { date, eventWords, id, money, moneyText, personalText, plural, state, time } from '../format.ts'
import { go, hrefOf, place, setQuery } from '../router.ts'
import { may } from '../session.ts'
import { type Case, caseAt, type CaseEvent, find, type Found, kindOf, readCase, type Resource } from './caseData.ts'

/** A case: an order, its invoices and its payments on one timeline, now or right after any of their events. */

const invoiceColumns: readonly Column<Extract<Resource, { kind: 'invoice' }>['now']>[] = [
  { label: 'Invoice', show: row => id(row.id), cell: row => row.id },
  { label: 'State', show: row => state(row.state), cell: row => row.state },
  moneyColumn('Total', row => row.total_amount),
  { label: 'Currency', show: row => row.currency, cell: row => row.currency },
  moneyColumn('Outstanding', row => row.amount_outstanding),
  { label: 'Due', show: row => date(row.due_date), cell: row => row.due_date },
  { label: 'Created', show: row => time(row.created_at), cell: row => row.created_at },
  { label: 'By', show: row => row.created_by, cell: row => row.created_by },
]

const paymentColumns: readonly Column<Payment>[] = [
  { label: 'Payment', show: row => id(row.id), cell: row => row.id },
  { label: 'State', show: row => state(row.state), cell: row => row.state },
  moneyColumn('Amount', row => row.amount),
  { label: 'Currency', show: row => row.currency, cell: row => row.currency },
  { label: 'Reference', show: row => personalText(row.reference), cell: row => row.reference },
  { label: 'Created', show: row => time(row.created_at), cell: row => row.created_at },
  { label: 'By', show: row => row.created_by, cell: row => row.created_by },
]

const created = [
  { name: 'currency', label: 'Currency' },
  { name: 'created_after', label: 'After', isTime: true },
  { name: 'created_before', label: 'Before', isTime: true },
] as const

const LISTS = {
  orders: () =>
    grid<Extract<Resource, { kind: 'order' }>['now']>({
      operation: 'GET /orders',
      items: 'orders',
      filters: [{ name: 'state', label: 'State', options: ['open', 'invoiced', 'completed', 'cancelled'] }, ...created],
      columns: [
        { label: 'Order', show: row => id(row.id), cell: row => row.id },
        { label: 'State', show: row => state(row.state), cell: row => row.state },
        moneyColumn('Total', row => row.total_amount),
        { label: 'Currency', show: row => row.currency, cell: row => row.currency },
        { label: 'Customer', show: row => personalText(row.customer_reference), cell: row => row.customer_reference },
        { label: 'Created', show: row => time(row.created_at), cell: row => row.created_at },
        { label: 'By', show: row => row.created_by, cell: row => row.created_by },
      ],
    }),
  invoices: () =>
    grid({
      operation: 'GET /invoices',
      items: 'invoices',
      filters: [
        { name: 'state', label: 'State', options: ['draft', 'approved', 'partially_paid', 'paid', 'voided'] },
        ...created,
      ],
      columns: invoiceColumns,
    }),
  payments: () =>
    grid({
      operation: 'GET /payments',
      items: 'payments',
      filters: [
        {
          name: 'state',
          label: 'State',
          options: ['pending', 'succeeded', 'failed', 'partially_refunded', 'refunded'],
        },
        { name: 'reference', label: 'Reference' },
        ...created,
      ],
      columns: paymentColumns,
    }),
} as const

const isList = (name: string): name is keyof typeof LISTS => Object.hasOwn(LISTS, name)

const fact = (label: string, value: unknown): TemplateResult => html`<div><dt>${label}</dt><dd>${value}</dd></div>`

const factsOf = (resource: Resource): unknown => {
  const { kind, now } = resource
  const of = (amount: number): TemplateResult => money(amount, now.currency, now.exponent)
  if (kind === 'order')
    return [
      fact('Total', of(now.total_amount)),
      fact('Customer', personalText(now.customer_reference)),
      fact('Lines', now.lines.length),
    ]
  if (kind === 'invoice')
    return [
      fact('Total', of(now.total_amount)),
      fact('Paid', of(now.amount_paid)),
      fact('Outstanding', of(now.amount_outstanding)),
      fact('Due', date(now.due_date)),
      fact('Approved by', now.approved_by ?? '–'),
    ]
  return [
    fact('Amount', of(now.amount)),
    fact('Refunded', of(now.refunded_amount)),
    fact('Reference', personalText(now.reference)),
    ...(now.failure ? [fact('Failure', now.failure.code)] : []),
  ]
}

const ACTIONS: Readonly<Record<string, readonly (readonly [label: string, operation: string, scope: string])[]>> = {
  open: [['Raise an invoice', 'raise_invoice', 'invoices:write']],
  draft: [
    ['Approve', 'approve_invoice', 'invoice:approve'],
    ['Void', 'void_invoice', 'invoices:write'],
  ],
  approved: [['Pay', 'create_payment', 'payments:write']],
  partially_paid: [['Pay', 'create_payment', 'payments:write']],
  succeeded: [['Refund', 'refund_payment', 'payments:refund']],
  partially_refunded: [['Refund', 'refund_payment', 'payments:refund']],
}

/** What may be done now, as links to forms that are filled with what is known. */
const actionsOf = ({ kind, now }: Resource): unknown => {
  const known: Record<string, string> = {
    ...(kind === 'order' ? { order_id: now.id } : { id: now.id }),
    ...(kind === 'invoice'
      ? { invoice_id: now.id, amount: String(now.amount_outstanding), currency: now.currency }
      : {}),
  }
  return (ACTIONS[now.state] ?? [])
    .filter(([, , scope]) => may(scope))
    .map(([label, operation]) => html`<a class="button" href=${hrefOf('do', operation, known)}>${label}</a>`)
}

export class CasePage extends PlacedView {
  static override properties = { subject: {} }
  declare subject: string

  private readonly found = new Task(this, {
    args: () => [this.subject] as const,
    task: async ([subject]): Promise<Case | Found | undefined> => {
      if (subject === '' || isList(subject)) return undefined
      return kindOf(subject) ? readCase(subject) : find(subject)
    },
  })

  private readonly past = new Task(this, {
    args: () => [this.found.value, this.selected()?.event_id ?? ''] as const,
    task: async ([found, event]) => {
      const selected = this.selected()
      if (selected === undefined || event === '' || found === undefined || !('resources' in found)) return undefined
      return { event: selected, resources: await caseAt(found, selected) }
    },
  })

  private events(): readonly CaseEvent[] {
    const { value } = this.found
    return value !== undefined && 'events' in value ? value.events : []
  }

  private selected(): CaseEvent | undefined {
    const event = place().query.get('event')
    return event === null ? undefined : this.events().find(({ event_id }) => event_id === event)
  }

  private step(by: number): void {
    const events = this.events()
    const selected = this.selected()
    const index = selected ? events.indexOf(selected) : by < 0 ? events.length : -1
    const next = events[index + by]
    setQuery({ event: next?.event_id ?? '' }, 'replace')
  }

  protected override updated(_: PropertyValues): void {
    const { value, status } = this.found
    // Until it is complete the value is that of the text before.
    if (status !== TaskStatus.COMPLETE) return
    const only = value !== undefined && 'only' in value ? value.only : undefined
    if (only && kindOf(this.subject) === undefined)
      go(hrefOf('case', only.id, only.event ? { event: only.event } : {}), 'replace')
  }

  private event(entry: CaseEvent): unknown {
    const isSelected = entry === this.selected()
    const select = (): void => setQuery({ event: isSelected ? '' : entry.event_id }, 'replace')
    return html`<li class=${isSelected ? 'selected' : ''}>
      <button type="button" class="event" aria-pressed=${isSelected ? 'true' : 'false'} @click=${select}>
        <span class="what ${entry.kind}">${eventWords(entry.type)}</span> ${time(entry.at)}
      </button>
      <p class="soft">by <bdi>${entry.subject}</bdi>${entry.client === entry.subject ? nothing : html` with ${entry.client}`}, permitted by ${entry.authority}${typeof entry.data['reason'] === 'string' ? html`, because <bdi class="text">“${entry.data['reason']}”</bdi>` : nothing}</p>
      <details><summary>Details of ${entry.kind} <span class="id">${entry.resource}</span></summary>
        <dl class="facts">
          ${fact('Event id', html`<span class="id">${entry.event_id}</span>`)}
          ${fact('Revision', entry.revision)}
          ${fact('Correlation id', html`<a class="id" href=${hrefOf('case', entry.correlation_id)}>${entry.correlation_id}</a>`)}
          ${fact('Caused by', html`<span class="id">${entry.causation_id}</span>`)}
        </dl>
        ${may('audit:read') ? html`<a href=${hrefOf('audit', 'proof', { event_id: entry.event_id })}>Verify that it is unchanged</a>` : nothing}
        ${raw(entry.data, 'Data')}
      </details>
    </li>`
  }

  private card(resource: Resource): unknown {
    const { kind, now } = resource
    return html`<section class="card ${now.id === this.subject ? 'subject' : ''}" aria-label="${kind} ${now.id}">
      <div class="tools"><h2>${kind}</h2> ${state(now.state)} <a class="id" href=${hrefOf('case', now.id)}>${now.id}</a>
        <span class="spring"></span>${this.selected() ? nothing : actionsOf(resource)} ${copyButton(() => now.id, 'Copy id')}</div>
      ${stateDiagram(kind, now.state)}
      <dl class="facts">${factsOf(resource)}</dl>
      ${raw(now)}
    </section>`
  }

  private case({ resources, events }: Case): unknown {
    const selected = this.selected()
    // While another moment is read, the one before stays, under its own name.
    const then = selected && this.past.value
    return html`<div class="tools">
        <span role="status">${then ? html`As of <strong>${eventWords(then.event.type)}</strong>, ${time(then.event.at)}` : selected ? 'Loading…' : 'As it is now'}</span>
        <span class="spring"></span>
        <button type="button" @click=${() => this.step(-1)}>Earlier</button>
        <button type="button" ?disabled=${!selected} @click=${() => this.step(1)}>Later</button>
        <button type="button" ?disabled=${!selected} @click=${() => setQuery({ event: '' }, 'replace')}>Now</button>
      </div>
      <div class="case">
        <div>${(selected ? (then?.resources ?? []) : resources).map(resource => this.card(resource))}</div>
        <section aria-label="Timeline"><h2>${plural(events.length, 'event')}</h2><ol class="timeline">${events.map(entry => this.event(entry))}</ol></section>
      </div>`
  }

  private results({ payments, accounts, records, only }: Found): unknown {
    if (only) return nothing
    if (payments.length + accounts.length + records.length === 0)
      return html`<p class="empty">Nothing has this id or reference in your tenant. Ids begin with ord_, inv_, pay_ or ent_; events have UUIDs.</p>`
    return html`${payments.map(row => html`<p>${id(row.id)} ${state(row.state)} ${moneyText(row.amount, row.currency, row.exponent)} <bdi class="text">${row.reference}</bdi></p>`)}
      ${accounts.length === 0 ? nothing : html`<h2>What the customer owes</h2>`}
      ${accounts.map(row => html`<p><a class="id" href=${hrefOf('money', '', { account: row.code })}>${row.code}</a> ${money(row.balances.posted, row.currency, row.exponent)}</p>`)}
      ${records.length === 0 ? nothing : html`<h2>Decisions on the request</h2>`}
      ${records.map(row => html`<p>${time(row.created_at)} ${state(row.decision)} ${row.operation} ${id(row.resource)} by ${row.subject}</p>`)}`
  }

  private lists(): unknown {
    const chosen = isList(this.subject) ? this.subject : may('invoices:read') ? 'invoices' : 'payments'
    const names = (Object.keys(LISTS) as (keyof typeof LISTS)[]).filter(name => may(`${name}:read`))
    return html`<div class="tabs" role="navigation" aria-label="Lists">${names.map(
      name => html`<a href=${hrefOf('case', name)} aria-current=${name === chosen ? 'page' : nothing}>${name}</a>`,
    )}</div>${may(`${chosen}:read`) ? html`<div class=${chosen}>${LISTS[chosen]()}</div>` : nothing}`
  }

  protected override render(): unknown {
    if (this.subject === '' || isList(this.subject)) return html`<h1>Cases</h1>${this.lists()}`
    const heading = kindOf(this.subject) ? 'Case' : 'Search'
    return html`<h1>${heading} <bdi class="id text">${this.subject}</bdi></h1>
      ${this.past.status === TaskStatus.ERROR ? failure(this.past.error) : nothing}
      ${shown(this.found, found => (found === undefined ? nothing : 'resources' in found ? this.case(found) : this.results(found)), { isOfSubject: true })}`
  }
}

define('case-page', CasePage)
