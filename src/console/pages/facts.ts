import { Task } from '@lit/task'
import { html, nothing } from 'lit'
import type { CloudEvent, DeadLetter, Subscription } from '../../../scripts/client/src/generated.ts'
import { read, request } from '../api.ts'
import { grid } from '../elements/grid.ts'
import { copyButton, define, failure, PlacedView, raw, shown } from '../elements/view.ts'
import { count, id, plural, state, time } from '../format.ts'
import { hrefOf, place, setQuery } from '../router.ts'
import { may } from '../session.ts'
import { FACT_TYPES, followFacts } from './factStream.ts'

/** The published facts as they appear, and the subscriptions that deliver them. */

/** The oldest are dropped from the page beyond this number. */
const SHOWN_MAX = 100

export class FactsTail extends PlacedView {
  static override properties = {
    facts: { state: true },
    waiting: { state: true },
    status: { state: true },
    error: { state: true },
  }
  declare private facts: readonly CloudEvent[]
  declare private waiting: readonly CloudEvent[]
  declare private status: 'live' | 'paused' | 'reconnecting'
  declare private error: unknown

  private ended = new AbortController()
  private followed = ''

  constructor() {
    super()
    this.facts = []
    this.waiting = []
    this.status = 'live'
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback()
    this.ended.abort()
    this.followed = ''
  }

  private filters(): { type: string; subject: string } {
    const { query } = place()
    return { type: query.get('type') ?? '', subject: query.get('subject') ?? '' }
  }

  private readonly receive = (fact: CloudEvent): void => {
    if (this.status === 'paused') this.waiting = [fact, ...this.waiting].slice(0, SHOWN_MAX)
    else this.facts = [fact, ...this.facts].slice(0, SHOWN_MAX)
  }

  /** Begins anew when the filters change. */
  protected override willUpdate(): void {
    const filters = this.filters()
    if (this.followed === JSON.stringify(filters)) return
    this.followed = JSON.stringify(filters)
    this.ended.abort()
    this.ended = new AbortController()
    Object.assign(this, { facts: [], waiting: [], error: undefined, status: 'live' })
    void followFacts(filters, this.receive, {
      signal: this.ended.signal,
      onState: connected => {
        if (this.status !== 'paused') this.status = connected ? 'live' : 'reconnecting'
      },
    }).catch((error: unknown) => {
      if (!this.ended.signal.aborted) this.error = error
    })
  }

  private readonly pause = (): void => {
    if (this.status === 'paused') {
      this.facts = [...this.waiting, ...this.facts].slice(0, SHOWN_MAX)
      Object.assign(this, { waiting: [], status: 'live' })
    } else this.status = 'paused'
  }

  private fact(fact: CloudEvent): unknown {
    return html`<li><details><summary><span class="what">${fact.type}</span> ${time(fact.time)} <span class="id">${fact.subject}</span></summary>
      <p>${id(fact.subject)} at position ${fact.position}</p>${raw(fact, 'The fact')}</details></li>`
  }

  protected override render(): unknown {
    const { type, subject } = this.filters()
    const change =
      (name: string) =>
      ({ target }: Event) =>
        setQuery({ [name]: (target as HTMLInputElement).value.trim() })
    return html`<div class="tools">
        <label>Type <select .value=${type} @change=${change('type')}><option value="">all</option>
          ${FACT_TYPES.map(one => html`<option ?selected=${one === type}>${one}</option>`)}</select></label>
        <label>Subject <input type="search" .value=${subject} @change=${change('subject')} maxlength="500" /></label>
        <span class="spring"></span>
        <span role="status">${state(this.status)}${this.waiting.length > 0 ? html` ${count(this.waiting.length)} waiting` : nothing}</span>
        <button type="button" @click=${this.pause}>${this.status === 'paused' ? 'Continue' : 'Pause'}</button>
      </div>
      ${
        this.error === undefined
          ? nothing
          : failure(this.error, () => {
              this.followed = ''
              this.requestUpdate()
            })
      }
      ${
        this.facts.length === 0
          ? html`<p class="empty">No fact in the last hour. New ones appear here by themselves.</p>`
          : html`<ol class="timeline">${this.facts.map(fact => this.fact(fact))}</ol>`
      }`
  }
}

define('facts-tail', FactsTail)

type From = 'beginning' | { readonly position: string } | { readonly time: string }

/** Delivers facts again: says first how many, and where the log ends. */
export class ReplayForm extends PlacedView {
  static override properties = {
    subscription: { attribute: false },
    kind: { state: true },
    value: { state: true },
    outcome: { state: true },
  }
  declare subscription: Subscription
  declare private kind: 'beginning' | 'position' | 'time'
  declare private value: string
  declare private outcome: unknown

  private key = crypto.randomUUID()

  constructor() {
    super()
    this.kind = 'position'
    this.value = '0'
  }

  private from(): From {
    if (this.kind === 'beginning') return 'beginning'
    if (this.kind === 'position') return { position: this.value }
    return { time: new Date(this.value).toISOString() }
  }

  /** The facts that would be sent, counted up to a limit, and the position of the last event. */
  private readonly preview = new Task(this, {
    args: () => [this.kind, this.value] as const,
    task: async ([kind, value]) => {
      const isIncomplete = kind !== 'beginning' && value === ''
      if (isIncomplete || !may('events:read')) return undefined
      const query =
        kind === 'beginning'
          ? {}
          : kind === 'position'
            ? { from_position: value }
            : { from_time: new Date(value).toISOString() }
      let [sent, cursor, head, isMore] = [0, undefined as string | undefined, '0', true]
      for (let pages = 0; isMore && pages < 20; pages += 1) {
        const page = await read('GET /events', { query: { ...query, limit: 100, cursor } })
        sent += page.items.filter(({ type }) => (this.subscription.types as readonly string[]).includes(type)).length
        ;[cursor, head, isMore] = [page.page.next_cursor, page.page.as_of_position, page.page.has_more]
      }
      return { sent, head, isMore }
    },
  })

  private readonly submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault()
    try {
      const { data } = await request('POST /subscriptions/{id}:replay', {
        path: { id: this.subscription.id },
        body: { from: this.from() },
        headers: { 'Idempotency-Key': this.key },
      })
      this.outcome = html`<p role="status">Accepted as <span class="id">${data.id}</span>: ${count(data.progress.total ?? 0)} positions.</p>`
      this.key = crypto.randomUUID()
    } catch (error) {
      this.outcome = failure(error)
    }
  }

  protected override render(): unknown {
    const type = this.kind === 'time' ? 'datetime-local' : 'text'
    return html`<form class="card" @submit=${this.submit}>
      <h3>Replay</h3>
      <p>It is at position ${this.subscription.position}, ${this.subscription.lag ?? 'an unknown number of'} facts behind.</p>
      <div class="tools">
        <label>From <select .value=${this.kind} @change=${({ target }: Event) => {
          this.kind = (target as HTMLSelectElement).value as 'position'
          this.value = this.kind === 'position' ? '0' : ''
        }}><option value="position">a position</option><option value="time">a time</option><option value="beginning">the beginning</option></select></label>
        ${
          this.kind === 'beginning'
            ? nothing
            : html`<label>${this.kind === 'time' ? 'Time' : 'Position'} <input type=${type} required .value=${this.value}
                pattern=${this.kind === 'position' ? '[0-9]{1,19}' : nothing} @change=${({ target }: Event) => {
                  this.value = (target as HTMLInputElement).value
                }} /></label>`
        }
        <button class="main">Replay</button>
      </div>
      ${shown(
        this.preview,
        found =>
          found
            ? html`<p role="status">The log ends at position ${found.head}. ${found.isMore ? 'More than ' : ''}${plural(found.sent, 'fact')} will be sent again.</p>`
            : nothing,
        { isOfSubject: true },
      )}
      ${this.outcome}
    </form>`
  }
}

define('replay-form', ReplayForm)

export class SubscriptionView extends PlacedView {
  static override properties = { subject: {}, error: { state: true } }
  declare subject: string
  declare private error: unknown

  private readonly found = new Task(this, {
    args: () => [this.subject] as const,
    task: ([id]) => read('GET /subscriptions/{id}', { path: { id } }),
  })

  private async act(name: 'pause' | 'resume'): Promise<void> {
    this.error = undefined
    try {
      await request(`POST /subscriptions/{id}:${name}`, { path: { id: this.subject }, body: {} })
    } catch (error) {
      this.error = error
    }
    await this.found.run()
  }

  private subscription(one: Subscription): unknown {
    const action = one.state === 'active' ? 'pause' : 'resume'
    return html`<section class="card"><div class="tools">${state(one.state)} <span class="id">${one.id}</span><span class="spring"></span>
          <button type="button" @click=${() => this.act(action)}>${action === 'pause' ? 'Pause' : 'Resume'}</button>${copyButton(() => one.id, 'Copy id')}</div>
        <dl class="facts"><div><dt>Types</dt><dd>${one.types.join(', ')}</dd></div><div><dt>Topic</dt><dd class="id">${one.topic}</dd></div>
          <div><dt>Behind</dt><dd>${one.lag === null ? 'not counted' : plural(one.lag, 'fact')}</dd></div>
          <div><dt>Dead letters</dt><dd>${count(one.parked)}</dd></div>${one.stop_reason === null ? nothing : html`<div><dt>Stopped because</dt><dd>${one.stop_reason}</dd></div>`}</dl>
        ${raw(one)}</section>
      ${this.error === undefined ? nothing : failure(this.error)}
      <replay-form .subscription=${one}></replay-form>
      <h2>Dead letters</h2>
      ${grid<DeadLetter>({
        operation: 'GET /subscriptions/{id}/dead-letters',
        items: 'dead letters',
        name: 'letters',
        input: { path: { id: one.id } },
        empty: 'Every fact was delivered.',
        columns: [
          { label: 'Fact', show: row => id(row.id), cell: row => row.id },
          { label: 'Type', show: row => row.type, cell: row => row.type },
          { label: 'Key', show: row => id(row.subject), cell: row => row.subject },
          { label: 'Position', isNumber: true, show: row => row.position, cell: row => row.position },
          { label: 'Reason', show: row => html`<bdi class="text">${row.reason}</bdi>`, cell: row => row.reason },
          { label: 'Attempts', isNumber: true, show: row => row.attempts, cell: row => row.attempts },
          { label: 'First failed', show: row => time(row.first_failed_at), cell: row => row.first_failed_at },
          { label: 'Next', show: row => this.next(row), cell: row => row.requested },
        ],
      })}`
  }

  private next({ subject, position, requested }: DeadLetter): unknown {
    if (requested !== null) return html`${requested} asked for`
    if (!may('events:subscribe')) return '–'
    const of = { id: this.subject, subject }
    return html`<a href=${hrefOf('do', 'replay_dead_letters', of)}>Deliver the key again</a>
      <a href=${hrefOf('do', 'discard_dead_letters', { ...of, position })}>Discard</a>`
  }

  protected override render(): unknown {
    return shown(this.found, one => this.subscription(one), { isOfSubject: true })
  }
}

define('subscription-view', SubscriptionView)

const subscriptions = (): unknown =>
  grid<Subscription>({
    operation: 'GET /subscriptions',
    items: 'subscriptions',
    filters: [{ name: 'state', label: 'State', options: ['active', 'paused', 'stopped'] }],
    empty: html`<a href=${hrefOf('do', 'create_subscription')}>Create one</a>`,
    columns: [
      {
        label: 'Subscription',
        show: row => html`<a class="id" href=${hrefOf('facts', row.id)}>${row.id}</a>`,
        cell: row => row.id,
      },
      { label: 'State', show: row => state(row.state), cell: row => row.state },
      { label: 'Types', show: row => row.types.join(', '), cell: row => row.types.join(' ') },
      { label: 'Behind', isNumber: true, show: row => row.lag ?? '–', cell: row => row.lag },
      {
        label: 'Dead letters',
        isNumber: true,
        show: row => (row.parked > 0 ? html`<span class="state bad">${count(row.parked)}</span>` : '0'),
        cell: row => row.parked,
      },
      { label: 'Stopped because', show: row => row.stop_reason ?? '–', cell: row => row.stop_reason },
      { label: 'By', show: row => row.created_by, cell: row => row.created_by },
      { label: 'Created', show: row => time(row.created_at), cell: row => row.created_at },
    ],
  })

export class FactsPage extends PlacedView {
  static override properties = { subject: {} }
  declare subject: string

  protected override render(): unknown {
    const isTail = this.subject === '' && may('events:read')
    const tabs = [
      ...(may('events:read') ? [['', 'Live'] as const] : []),
      ...(may('events:subscribe') ? [['subscriptions', 'Subscriptions'] as const] : []),
    ]
    return html`<h1>Facts</h1>
      <div class="tabs" role="navigation" aria-label="Views">${tabs.map(
        ([name, label]) =>
          html`<a href=${hrefOf('facts', name)} aria-current=${(name === '') === isTail ? 'page' : nothing}>${label}</a>`,
      )}</div>
      ${
        isTail
          ? html`<facts-tail></facts-tail>`
          : !may('events:subscribe')
            ? html`<p>This requires the scope events:subscribe.</p>`
            : this.subject.startsWith('sub_')
              ? html`<subscription-view .subject=${this.subject}></subscription-view>`
              : subscriptions()
      }`
  }
}

define('facts-page', FactsPage)
