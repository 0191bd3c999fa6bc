import { Task } from '@lit/task'
import { html, nothing } from 'lit'
import type { AuditHead, AuditRecord } from '../../../scripts/client/src/generated.ts'
import { read } from '../api.ts'
import { grid } from '../elements/grid.ts'
import { define, PlacedView, raw, shown, View } from '../elements/view.ts'
import { count, id, state, time, words } from '../format.ts'
import { type KeptHead, keptHeadOf, verify } from '../proof.ts'
import { hrefOf, place, setQuery } from '../router.ts'

/** Decisions on sensitive operations, the signed heads of the log, and the verification of an event. */

const records = (): unknown =>
  grid<AuditRecord>({
    operation: 'GET /audit-records',
    items: 'decisions',
    filters: [
      { name: 'decision', label: 'Decision', options: ['granted', 'denied'] },
      { name: 'operation', label: 'Operation' },
      { name: 'subject', label: 'Subject' },
      { name: 'resource', label: 'Resource' },
      { name: 'correlation_id', label: 'Correlation id' },
      { name: 'created_after', label: 'After', isTime: true },
      { name: 'created_before', label: 'Before', isTime: true },
    ],
    columns: [
      { label: 'Time', show: row => time(row.created_at), cell: row => row.created_at },
      { label: 'Decision', show: row => state(row.decision), cell: row => row.decision },
      { label: 'Operation', show: row => words(row.operation), cell: row => row.operation },
      { label: 'Resource', show: row => id(row.resource), cell: row => row.resource },
      { label: 'Subject', show: row => html`<bdi class="text">${row.subject}</bdi>`, cell: row => row.subject },
      { label: 'Client', show: row => row.client, cell: row => row.client },
      { label: 'Authority', show: row => row.authority, cell: row => row.authority },
      { label: 'Check', show: row => row.check, cell: row => row.check },
      { label: 'Code', show: row => row.code ?? '–', cell: row => row.code },
      { label: 'Times', isNumber: true, show: row => count(row.count), cell: row => row.count },
    ],
  })

const heads = (): unknown =>
  html`<p>Each head signs the whole log up to it. Keep one outside of this installation: against it you can verify any event
      before it, whatever happens to the service.</p>
    ${grid<AuditHead>({
      operation: 'GET /audit/heads',
      items: 'heads',
      columns: [
        { label: 'Time', show: row => time(row.time), cell: row => row.time },
        { label: 'Events', isNumber: true, show: row => count(row.tree_size), cell: row => row.tree_size },
        { label: 'Generation', isNumber: true, show: row => row.generation, cell: row => row.generation },
        { label: 'Root', show: row => html`<span class="id">${row.root.slice(0, 16)}…</span>`, cell: row => row.root },
        { label: 'Key', show: row => html`<span class="id">${row.key}</span>`, cell: row => row.key },
      ],
    })}`

const textIn = (form: FormData, name: string): string => {
  const text = form.get(name)
  if (typeof text !== 'string') return ''
  return text.trim()
}

export class ProofView extends PlacedView {
  static override properties = { kept: { state: true }, refused: { state: true } }
  declare private kept: KeptHead | undefined
  declare private refused: string | undefined

  private readonly proof = new Task(this, {
    args: () => [place().query.get('event_id') ?? '', this.kept] as const,
    task: async ([event_id, kept]) => {
      if (event_id === '') return undefined
      const query = { tree_size: kept?.tree_size }
      const proof = await read('GET /audit/proof/{event_id}', { path: { event_id }, query })
      return { proof, checks: await verify(proof, kept) }
    },
  })

  private readonly submit = (event: SubmitEvent): void => {
    event.preventDefault()
    const form = new FormData(event.target as HTMLFormElement)
    const head = textIn(form, 'head')
    this.refused = undefined
    try {
      this.kept = head === '' ? undefined : keptHeadOf(head)
    } catch (error) {
      this.refused = error instanceof Error ? error.message : String(error)
      return
    }
    setQuery({ event_id: textIn(form, 'event_id') })
  }

  private result({ proof, checks }: NonNullable<typeof this.proof.value>): unknown {
    const holds = checks.every(({ passed }) => passed)
    return html`<section class="card" aria-label="Result">
      <p role="status">${holds ? html`<span class="state good">unchanged</span>` : html`<span class="state bad">not proven</span>`}
        computed in this browser, against the head of ${time(proof.head.time)}</p>
      <ul class="check">${checks.map(({ passed, says }) => html`<li class=${passed ? 'yes' : 'no'}><span class="hidden">${passed ? 'Passed:' : 'Failed:'}</span> ${says}</li>`)}</ul>
      ${proof.event === null ? nothing : raw(JSON.parse(proof.event), 'The event')} ${raw(proof, 'The proof')}
    </section>`
  }

  protected override render(): unknown {
    return html`<form class="fields" @submit=${this.submit}>
        <label>Event id <input name="event_id" required .value=${place().query.get('event_id') ?? ''} pattern="[0-9a-f\\-]{36}" /></label>
        <label>The head that you kept, as JSON (empty: the newest head of the service) <textarea name="head"></textarea></label>
        ${this.refused === undefined ? nothing : html`<p role="alert" class="problem">${this.refused}</p>`}
        <div><button class="main">Verify</button></div>
      </form>
      ${shown(this.proof, found => (found ? this.result(found) : nothing))}`
  }
}

define('proof-view', ProofView)

const TABS = [
  ['', 'Decisions'],
  ['heads', 'Heads'],
  ['proof', 'Verify an event'],
] as const

export class AuditPage extends View {
  static override properties = { subject: {} }
  declare subject: string

  protected override render(): unknown {
    return html`<h1>Audit</h1>
      <div class="tabs" role="navigation" aria-label="Views">${TABS.map(
        ([name, label]) =>
          html`<a href=${hrefOf('audit', name)} aria-current=${name === this.subject ? 'page' : nothing}>${label}</a>`,
      )}</div>
      <div>${this.subject === 'proof' ? html`<proof-view></proof-view>` : this.subject === 'heads' ? heads() : records()}</div>`
  }
}

define('audit-page', AuditPage)
