import { Task, TaskStatus } from '@lit/task'
import { html, nothing, type PropertyValues } from 'lit'
import { curlOf, type Input, type OperationName, type Page, readAll, requestAny } from '../api.ts'
import { type Cell, downloadCsv } from '../csv.ts'
import { money, words } from '../format.ts'
import { place, setQuery } from '../router.ts'
import { copyButton, define, PlacedView, shown } from './view.ts'

/** A list of the API: one page at a time by its cursor, with its filters in the address. */

export type Column<T> = {
  readonly label: string
  /** The value as it is shown. */
  readonly show: (row: T) => unknown
  /** The same as a cell of the CSV file. */
  readonly cell: (row: T) => Cell
  readonly isNumber?: boolean
}

export type Filter = {
  readonly name: string
  readonly label: string
  readonly options?: readonly string[]
  readonly isTime?: boolean
}

/** An amount in minor units, with the currency of its row. */
export const moneyColumn = <T extends { readonly currency: string; readonly exponent: number }>(
  label: string,
  cell: (row: T) => number,
): Column<T> => ({ label, isNumber: true, show: row => money(cell(row), row.currency, row.exponent), cell })

/** Everything that a grid shows of one kind of item. */
export type GridOf<T> = {
  readonly operation: OperationName
  readonly items: string
  /** Parameters that the address does not change. */
  readonly input?: Input
  readonly columns: readonly Column<T>[]
  readonly filters?: readonly Filter[]
  /** What to do where the list is empty. */
  readonly empty?: unknown
  readonly actions?: (row: T, reload: () => void) => unknown
  /** Distinguishes the grids of one page in its address. */
  readonly name?: string
}

const PAGE_ROWS = 25
/** A file has at most this many rows; an export of the service has all. */
const CSV_ROWS_MAX = 5_000

/** The value of an input of type datetime-local, which has no zone. */
const localOf = (at: string): string => {
  if (at === '') return ''
  const moment = new Date(at)
  return new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

type Row = Record<string, unknown>

export class DataGrid extends PlacedView {
  static override properties = { of: { attribute: false }, chosen: { state: true }, isWriting: { state: true } }
  declare of: GridOf<Row>
  declare private chosen: Row | undefined
  declare private isWriting: boolean

  private readonly page = new Task(this, {
    args: () => [this.of.operation, JSON.stringify(this.input())] as const,
    task: async (_, { signal }) => (await requestAny<Page<Row>>(this.of.operation, { ...this.input(), signal })).data,
  })

  reload = (): void => void this.page.run()

  private parameter(name: string): string {
    return this.of.name === undefined ? name : `${this.of.name}.${name}`
  }

  private valueIn(name: string): string {
    return place().query.get(this.parameter(name)) ?? ''
  }

  private filters(): Record<string, string> {
    const { filters = [] } = this.of
    return Object.fromEntries(filters.map(({ name }) => [name, this.valueIn(name)]))
  }

  private input(): Input {
    const { input = {} } = this.of
    return { ...input, query: { ...input.query, ...this.filters(), limit: PAGE_ROWS, cursor: this.valueIn('cursor') } }
  }

  private filter(changes: Readonly<Record<string, string>>): void {
    const named = Object.entries({ ...changes, cursor: '' }).map(([name, value]) => [this.parameter(name), value])
    setQuery(Object.fromEntries(named))
  }

  private readonly writeCsv = async (): Promise<void> => {
    const { operation, input = {}, columns, items } = this.of
    this.isWriting = true
    try {
      const query = { ...input.query, ...this.filters() }
      const all = (await readAll(operation, { ...input, query }, CSV_ROWS_MAX)) as { readonly items: readonly Row[] }
      downloadCsv(
        items.replaceAll(' ', '-'),
        columns.map(({ label }) => label),
        all.items.map(row => columns.map(({ cell }) => cell(row))),
      )
    } finally {
      this.isWriting = false
    }
  }

  private filterField({ name, label, options, isTime }: Filter): unknown {
    const value = this.valueIn(name)
    const change = ({ target }: Event): void => {
      const { value: next } = target as HTMLInputElement
      this.filter({ [name]: isTime && next !== '' ? new Date(next).toISOString() : next })
    }
    if (options)
      return html`<label>${label}
        <select .value=${value} @change=${change}>
          <option value="">all</option>
          ${options.map(option => html`<option value=${option} ?selected=${option === value}>${words(option)}</option>`)}
        </select></label>`
    return html`<label>${label}
      <input type=${isTime ? 'datetime-local' : 'search'} .value=${isTime ? localOf(value) : value} @change=${change} /></label>`
  }

  private toolbar(): unknown {
    return html`<div class="tools">
      ${(this.of.filters ?? []).map(filter => this.filterField(filter))}
      <span class="spring"></span>
      <button type="button" class="quiet" @click=${this.reload}>Reload</button>
      ${copyButton(() => curlOf(this.of.operation, this.input()), 'Copy as curl')}
      <button type="button" class="quiet" ?disabled=${this.isWriting} @click=${this.writeCsv}>CSV</button>
    </div>`
  }

  private empty(): unknown {
    const isFiltered = Object.values(this.filters()).some(value => value !== '')
    const cleared = Object.fromEntries(Object.keys(this.filters()).map(name => [name, '']))
    if (!isFiltered) return html`<p class="empty">No ${this.of.items} yet. ${this.of.empty ?? nothing}</p>`
    return html`<p class="empty">No ${this.of.items} match the filters.
      <button type="button" @click=${() => this.filter(cleared)}>Clear the filters</button></p>`
  }

  private row(row: Row): unknown {
    const { columns, actions } = this.of
    return html`<tr>
      ${columns.map(
        ({ show, isNumber, label }) =>
          html`<td class=${isNumber ? 'number' : ''} data-label=${label}>${show(row)}</td>`,
      )}
      <td class="actions">
        ${actions?.(row, this.reload) ?? nothing}
        <button type="button" class="quiet" title="Show the JSON of this row" aria-label="JSON" @click=${() => {
          this.chosen = row
        }}>{ }</button>
      </td>
    </tr>`
  }

  private table({ items, page }: Page<Row>): unknown {
    if (items.length === 0) return this.empty()
    return html`<div class="scroll" tabindex="0" role="region" aria-label=${this.of.items}>
        <table>
          <thead><tr>
            ${this.of.columns.map(({ label, isNumber }) => html`<th scope="col" class=${isNumber ? 'number' : ''}>${label}</th>`)}
            <th scope="col"><span class="hidden">Actions</span></th>
          </tr></thead>
          <tbody>${items.map(row => this.row(row))}</tbody>
        </table>
      </div>
      ${this.pager(page)}`
  }

  private pager({ has_more: hasMore, next_cursor: next, as_of_position: position }: Page<Row>['page']): unknown {
    const isFirst = this.valueIn('cursor') === ''
    return html`<div class="tools pager">
      <span class="soft">Complete up to position ${position}</span><span class="spring"></span>
      ${isFirst ? nothing : html`<button type="button" @click=${() => this.filter({})}>First page</button>`}
      ${
        hasMore && next !== null
          ? html`<button type="button" @click=${() => setQuery({ [this.parameter('cursor')]: next })}>Next page</button>`
          : nothing
      }
    </div>`
  }

  protected override updated(changed: PropertyValues): void {
    if (changed.has('chosen' as never) && this.chosen !== undefined) this.querySelector('dialog')?.showModal()
  }

  protected override render(): unknown {
    const text = (): string => JSON.stringify(this.chosen, undefined, 2)
    const isPending = this.page.status === TaskStatus.PENDING
    return html`${this.toolbar()}
      <div class=${isPending ? 'stale' : ''} aria-busy=${isPending ? 'true' : 'false'}>${shown(this.page, page => this.table(page))}</div>
      <dialog aria-label="JSON of a row" @close=${() => {
        this.chosen = undefined
      }}>
        <div class="tools">${copyButton(text, 'Copy')}<span class="spring"></span>
          <button type="button" @click=${() => this.querySelector('dialog')?.close()}>Close</button></div>
        <pre tabindex="0">${this.chosen === undefined ? nothing : text()}</pre>
      </dialog>`
  }
}

define('data-grid', DataGrid)

export const grid = <T>(of: GridOf<T>): unknown => html`<data-grid .of=${of}></data-grid>`
