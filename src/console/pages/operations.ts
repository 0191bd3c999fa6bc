import { Task } from '@lit/task'
import { html, nothing } from 'lit'
import type { AuditRecord, Installation, Operation, Projection } from '../../../scripts/client/src/generated.ts'
import { type Input, type OperationName, read, request, send, unlessDenied } from '../api.ts'
import { download } from '../csv.ts'
import { grid } from '../elements/grid.ts'
import { define, failure, shown, View } from '../elements/view.ts'
import { count, duration, id, personalText, plural, state, time, words } from '../format.ts'
import { hrefOf } from '../router.ts'
import { may } from '../session.ts'

/** The work of the service itself: read models, exports, and what operators did. */

const REFRESH_MS = 3_000
const HAPPENED_MAX = 50
const RUNNING = new Set(['pending', 'requested', 'running'])

type Action = { readonly label: string; readonly operation: OperationName; readonly input: Input }

const EXTENSION: Readonly<Record<string, string>> = { 'text/csv': 'csv', 'application/vnd.apache.parquet': 'parquet' }

const downloadExport = async (operation: Operation): Promise<void> => {
  const response = await send('GET /exports/{id}/content', { path: { id: operation.id } })
  const type = (response.headers.get('content-type') ?? '').split(';', 1)[0] ?? ''
  download(`${operation.id}.${EXTENSION[type] ?? 'jsonl'}`, await response.blob())
}

const bar = ({
  done,
  total,
  unit,
  eta_seconds: eta,
}: Operation['progress'] | NonNullable<Projection['rebuild']>['progress']): unknown =>
  html`<progress max=${total ?? 1} value=${total === null ? nothing : done} aria-label="Progress"></progress>
    <small>${count(done)}${total === null ? '' : ` of ${count(total)}`} ${unit}${eta ? `, ${duration(eta)} left` : ''}</small>`

const installationRecords = (): unknown =>
  grid<AuditRecord>({
    operation: 'GET /installation/audit-records',
    items: 'records',
    name: 'installation',
    columns: [
      { label: 'Time', show: row => time(row.created_at), cell: row => row.created_at },
      { label: 'Operation', show: row => words(row.operation), cell: row => row.operation },
      { label: 'On', show: row => row.resource ?? '–', cell: row => row.resource },
      { label: 'By', show: row => html`<bdi>${row.subject}</bdi>`, cell: row => row.subject },
      { label: 'Decision', show: row => state(row.decision), cell: row => row.decision },
      { label: 'Reason', show: row => personalText(row.reason), cell: row => row.reason },
    ],
    filters: [
      { name: 'operation', label: 'Operation' },
      { name: 'subject', label: 'Subject' },
    ],
  })

const RECORDED = ['rebuild_projection', 'verify_projection', 'roll_back_projection', 'cancel_projection_rebuild']

export class ReadModels extends View {
  static override properties = { error: { state: true } }
  declare private error: unknown
  private timer = 0

  private readonly list = new Task(this, {
    args: () => [],
    task: () => unlessDenied(async () => (await read('GET /projections')).items),
  })

  override connectedCallback(): void {
    super.connectedCallback()
    this.timer = window.setInterval(() => {
      if (this.list.value !== undefined && document.visibilityState === 'visible') void this.list.run()
    }, REFRESH_MS)
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback()
    clearInterval(this.timer)
  }

  private async act({ operation, input, label }: Action): Promise<void> {
    if (!confirm(`${label}: ${input.path?.['name']}?`)) return
    this.error = undefined
    try {
      await request(operation, input)
    } catch (error) {
      this.error = error
    }
    await this.list.run()
  }

  private actions({ name, rebuild, previous_position: previous }: Projection): unknown {
    const input = { path: { name }, body: {} }
    const isRunning = rebuild !== null && RUNNING.has(rebuild.state)
    const actions: readonly Action[] = isRunning
      ? [{ label: 'Cancel', operation: 'POST /projections/{name}:cancel', input }]
      : [
          { label: 'Rebuild', operation: 'POST /projections/{name}:rebuild', input },
          { label: 'Verify', operation: 'POST /projections/{name}:verify', input },
          ...(previous === null
            ? []
            : [{ label: 'Roll back', operation: 'POST /projections/{name}:rollback', input } as const]),
        ]
    return actions.map(action => html`<button type="button" @click=${() => this.act(action)}>${action.label}</button> `)
  }

  private rebuild({ rebuild }: Projection): unknown {
    if (rebuild === null) return 'never'
    const { parity, difference, error } = rebuild
    const compared = parity
      ? `${plural(
          parity.tables.reduce((sum, { rows }) => sum + rows, 0),
          'row',
        )} equal at ${parity.position}`
      : ''
    return html`${state(rebuild.state)} ${words(rebuild.kind)} by ${rebuild.requested_by}, ${time(rebuild.requested_at)}
      ${RUNNING.has(rebuild.state) ? bar(rebuild.progress) : nothing}
      <div class="soft">${difference ? html`${difference.table} ${difference.key} differs in ${difference.column}: live <bdi>${difference.live}</bdi>, rebuilt <bdi>${difference.rebuilt}</bdi>` : compared} ${error}</div>`
  }

  private table(items: readonly Projection[]): unknown {
    return html`<h2>Read models</h2>${this.error === undefined ? nothing : failure(this.error)}
      <div class="scroll" tabindex="0" role="region" aria-label="Read models"><table>
        <thead><tr><th scope="col">Name</th><th scope="col" class="number">Behind</th><th scope="col" class="number">Parked</th><th scope="col">Newest rebuild</th><th scope="col">Actions</th></tr></thead>
        <tbody>${items.map(
          one => html`<tr><td data-label="Name">${one.name}</td>
            <td class="number" data-label="Behind">${one.lag.events >= 1_000 ? '1,000+' : count(one.lag.events)} <small>${duration(one.lag.seconds)}</small></td>
            <td class="number" data-label="Parked">${one.parked_events > 0 ? html`<span class="state bad">${count(one.parked_events)}</span>` : 0}</td>
            <td data-label="Newest rebuild"><div>${this.rebuild(one)}</div></td><td class="actions">${this.actions(one)}</td></tr>`,
        )}</tbody></table></div>
      ${
        may('audit:read')
          ? html`<p>What was done here: ${RECORDED.map(operation => html`<a href=${hrefOf('audit', '', { operation })}>${words(operation)}</a> `)}</p>`
          : nothing
      }
      ${
        may('audit:installation')
          ? html`<h2>What operators did at the command line</h2>${installationRecords()}`
          : nothing
      }`
  }

  protected override render(): unknown {
    return shown(this.list, items => (items === undefined ? nothing : this.table(items)))
  }
}

define('read-models', ReadModels)

/** What happened to the service, who holds which lease, and which clients use which version of the contract. */
export class InstallationState extends View {
  private records: readonly AuditRecord[] = []
  private readonly state = new Task(this, {
    args: () => [],
    task: () =>
      unlessDenied(async () => {
        if (may('audit:installation')) this.records = (await read('GET /installation/audit-records')).items
        return read('GET /installation')
      }),
  })

  private tables({ processes, leases, api_versions: uses }: Installation): unknown {
    const happened = [
      ...processes.flatMap(({ name, roles, started_at: at, stopped_at }) => [
        { at, what: `started (${roles.join(', ')})`, by: name },
        ...(stopped_at === null ? [] : [{ at: stopped_at, what: 'stopped', by: name }]),
      ]),
      ...leases.map(({ name, holder, taken_at: at }) => ({ at, what: `took over: ${name}`, by: holder })),
      ...this.records.map(one => ({
        at: one.created_at,
        what: `${words(one.operation)} ${one.resource ?? ''}`,
        by: one.subject,
      })),
    ].toSorted((one, other) => (one.at < other.at ? 1 : -1))
    return html`<h2>What happened</h2>
      <div class="scroll" tabindex="0" role="region" aria-label="What happened"><table>
        <thead><tr><th scope="col">Time</th><th scope="col">What</th><th scope="col">By</th></tr></thead>
        <tbody>${happened.slice(0, HAPPENED_MAX).map(
          ({ at, what, by }) => html`<tr><td data-label="Time">${time(at)}</td>
            <td data-label="What"><bdi class="text">${what}</bdi></td><td data-label="By"><bdi>${by}</bdi></td></tr>`,
        )}</tbody></table></div>
      <h2>Leases</h2>
      <div class="scroll" tabindex="0" role="region" aria-label="Leases"><table>
        <thead><tr><th scope="col">Work</th><th scope="col">Holder</th><th scope="col">Since</th><th scope="col" class="number">Taken</th></tr></thead>
        <tbody>${leases.map(
          one => html`<tr><td data-label="Work">${one.name}</td><td data-label="Holder">${one.holder}</td><td data-label="Since">${time(one.taken_at)}</td>
            <td class="number" data-label="Taken">${plural(one.epoch, 'time')}</td></tr>`,
        )}</tbody></table></div>
      <h2>Versions of the contract in use, last 30 days</h2>
      <div class="scroll" tabindex="0" role="region" aria-label="Versions in use"><table>
        <thead><tr><th scope="col">Version</th><th scope="col">Tenant</th><th scope="col">Client</th><th scope="col" class="number">Requests</th></tr></thead>
        <tbody>${uses.map(
          one => html`<tr><td data-label="Version">${one.version}</td><td data-label="Tenant">${one.tenant_id}</td><td data-label="Client"><bdi class="text">${one.client}</bdi></td>
            <td class="number" data-label="Requests">${count(one.requests)}</td></tr>`,
        )}</tbody></table></div>`
  }

  protected override render(): unknown {
    return shown(this.state, found => (found === undefined ? nothing : this.tables(found)))
  }
}

define('installation-state', InstallationState)

export class OperationsPage extends View {
  static override properties = { error: { state: true } }
  declare private error: unknown

  private readonly attempt = async (work: () => Promise<unknown>): Promise<void> => {
    this.error = undefined
    try {
      await work()
    } catch (error) {
      this.error = error
    }
  }

  private exports(): unknown {
    return grid<Operation>({
      operation: 'GET /operations',
      items: 'exports',
      name: 'exports',
      filters: [
        {
          name: 'state',
          label: 'State',
          options: ['pending', 'running', 'succeeded', 'failed', 'cancelled', 'expired'],
        },
        { name: 'created_after', label: 'After', isTime: true },
      ],
      empty: may('exports:write') ? html`<a href=${hrefOf('do', 'create_export')}>Order one</a>` : nothing,
      columns: [
        { label: 'Export', show: row => id(row.id), cell: row => row.id },
        { label: 'State', show: row => state(row.state), cell: row => row.state },
        { label: 'Progress', show: row => bar(row.progress), cell: row => row.progress.done },
        { label: 'Created', show: row => time(row.created_at), cell: row => row.created_at },
        { label: 'By', show: row => row.created_by, cell: row => row.created_by },
        { label: 'Until', show: row => time(row.expires_at), cell: row => row.expires_at },
      ],
      actions: (row, reload) =>
        row.state === 'succeeded'
          ? html`<button type="button" @click=${() => this.attempt(() => downloadExport(row))}>Download</button>`
          : (row.state === 'pending' || row.state === 'running') && may('exports:write')
            ? html`<button type="button" @click=${() =>
                this.attempt(() => request('POST /operations/{id}:cancel', { path: { id: row.id }, body: {} })).then(
                  reload,
                )}>Cancel</button>`
            : nothing,
    })
  }

  protected override render(): unknown {
    return html`<h1>Operations</h1>${this.error === undefined ? nothing : failure(this.error)}
      ${may('projections:operate') ? html`<read-models></read-models>` : nothing}
      ${may('audit:installation') ? html`<installation-state></installation-state>` : nothing}
      ${may('exports:read') ? html`<h2>Exports</h2>${this.exports()}` : nothing}`
  }
}

define('operations-page', OperationsPage)
