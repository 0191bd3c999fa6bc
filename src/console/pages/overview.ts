import { Task } from '@lit/task'
import { html, nothing } from 'lit'
import type { CloudEvent } from '../../../scripts/client/src/generated.ts'
import { read, readAll, unlessDenied } from '../api.ts'
import '../elements/plot.ts'
import type { Plotted } from '../elements/plot.ts'
import { define, shown, View } from '../elements/view.ts'
import { count, duration } from '../format.ts'
import { hrefOf } from '../router.ts'
import { may } from '../session.ts'
import './installationPlots.ts'

/** What needs attention, and how the last hour went. */

type Tile = {
  readonly label: string
  readonly value: number
  /** There are more than were counted. */
  readonly isMore?: boolean
  readonly href: string
  readonly tone: 'bad' | 'waiting'
  readonly says: string
}

const COUNTED_MAX = 500
const REFRESH_MS = 15_000
const LAG_MAX_SECONDS = 30
const HEALTHY = new Set(['ok', 'live', 'waiting', 'catching_up', 'off'])

const counted = (
  { items, hasMore }: { readonly items: readonly unknown[]; readonly hasMore: boolean },
  rest: Omit<Tile, 'value' | 'isMore'>,
): Tile => ({ ...rest, value: items.length, isMore: hasMore })

/** A tenant that does not operate the installation may have the scope, and is refused: once is enough. */
let isOperator = true

const asOperator = async <T>(scope: string, ask: () => Promise<readonly T[]>): Promise<readonly T[]> => {
  if (!may(scope) || !isOperator) return []
  const answer = await unlessDenied(ask)
  isOperator = answer !== undefined
  return answer ?? []
}

const projections = () => asOperator('projections:operate', async () => (await read('GET /projections')).items)

const DAY_MS = 86_400_000
const EXPIRES_WITHIN_DAYS = 30
const GIB = 1024 ** 3

/** Below one GiB Postgres and the event store may stop soon. */
const machineTiles = async (): Promise<readonly Tile[]> => {
  const { free_bytes: free, certificates } = await read('GET /installation')
  const until = new Date(Date.now() + EXPIRES_WITHIN_DAYS * DAY_MS).toISOString()
  const late = certificates.filter(({ expires_at }) => expires_at === null || expires_at < until)
  const common = { href: hrefOf('operations'), tone: 'bad' as const }
  return [
    {
      ...common,
      label: 'Disks nearly full',
      value: free < GIB ? 1 : 0,
      says: `${(free / GIB).toFixed(1)} GiB are free where the data is`,
    },
    {
      ...common,
      label: 'Certificates that expire',
      value: late.length,
      says:
        late.map(({ name, expires_at }) => `${name} ${expires_at ?? 'cannot be read'}`).join(', ') ||
        `Within ${EXPIRES_WITHIN_DAYS} days, of ${certificates.length} that the settings name`,
    },
  ]
}

const subscriptionTiles = async (): Promise<readonly Tile[]> => {
  if (!may('events:subscribe')) return []
  const { items } = await readAll('GET /subscriptions', {}, COUNTED_MAX)
  const parked = items.reduce((sum, { parked: letters }) => sum + letters, 0)
  const href = hrefOf('facts', 'subscriptions')
  return [
    { label: 'Dead letters', value: parked, href, tone: 'bad', says: 'Facts that subscriptions could not deliver' },
    {
      label: 'Subscriptions stopped or paused',
      value: items.filter(({ state }) => state !== 'active').length,
      href,
      tone: 'bad',
      says: 'They deliver nothing until somebody resumes them',
    },
  ]
}

const invoiceTiles = async (): Promise<readonly Tile[]> => {
  if (!may('invoices:read')) return []
  const today = new Date().toISOString().slice(0, 10)
  const [draft, ...open] = await Promise.all(
    ['draft', 'approved', 'partially_paid'].map(state => readAll('GET /invoices', { query: { state } }, COUNTED_MAX)),
  )
  const overdue = open.flatMap(({ items }) => items).filter(({ due_date }) => due_date < today)
  return [
    ...(draft
      ? [
          counted(draft, {
            label: 'Invoices to approve',
            href: hrefOf('case', 'invoices', { state: 'draft' }),
            tone: 'waiting',
            says: 'They cannot be paid before',
          }),
        ]
      : []),
    {
      label: 'Invoices overdue',
      value: overdue.length,
      isMore: open.some(({ hasMore }) => hasMore),
      href: hrefOf('money'),
      tone: 'bad',
      says: 'Approved, due before today, and not paid',
    },
  ]
}

/** Calendar months that are over and not closed; of books that were never closed, at least one. */
const periodTile = async (): Promise<Tile> => {
  const now = new Date()
  const monthStart = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth()))
  const [closing] = (await read('GET /periods', { query: { limit: 1 } })).items
  const tile = { label: 'Months not closed', href: hrefOf('money'), tone: 'bad' as const }
  if (closing === undefined) {
    const as_of = monthStart.toISOString()
    const { items } = await read('GET /trial-balance', { query: { as_of, limit: 1 } })
    return { ...tile, value: items.length, isMore: items.length > 0, says: 'No period of the books was ever closed' }
  }
  const open = new Date(`${closing.through}T00:00:00Z`)
  open.setUTCDate(open.getUTCDate() + 1)
  const months = (monthStart.getUTCFullYear() - open.getUTCFullYear()) * 12 + now.getUTCMonth() - open.getUTCMonth()
  return { ...tile, value: Math.max(0, months), says: `The books are closed through ${closing.through}` }
}

const otherTiles = async (): Promise<readonly Tile[]> => {
  const state = { state: 'pending' }
  return [
    ...(may('ledger:read') ? [await periodTile()] : []),
    ...(may('payments:read')
      ? [
          counted(await readAll('GET /payments', { query: state }, COUNTED_MAX), {
            label: 'Payments pending',
            href: hrefOf('case', 'payments', state),
            tone: 'waiting',
            says: 'Neither settled nor failed',
          }),
        ]
      : []),
    ...(may('exports:read')
      ? [
          counted(await readAll('GET /operations', { query: { state: 'failed' } }, COUNTED_MAX), {
            label: 'Exports failed',
            href: hrefOf('operations', '', { 'exports.state': 'failed' }),
            tone: 'bad',
            says: 'Their files do not exist',
          }),
        ]
      : []),
  ]
}

type Readiness = { readonly status: string; readonly checks: Readonly<Record<string, string>> }

const installationTiles = async (): Promise<readonly Tile[]> => {
  const [{ checks }, models] = await Promise.all([
    fetch('/readyz').then(response => response.json() as Promise<Readiness>),
    projections(),
  ])
  const unwell = Object.entries(checks).filter(([, word]) => !HEALTHY.has(word))
  const late = models.filter(({ lag, parked_events: parked }) => lag.seconds > LAG_MAX_SECONDS || parked > 0)
  return [
    {
      label: 'Parts not ready',
      value: unwell.length,
      href: '/readyz',
      tone: 'bad',
      says: unwell.map(([name, word]) => `${name} ${word}`).join(', ') || 'Dependencies and feeds of the service',
    },
    ...(models.length === 0
      ? []
      : [
          {
            label: 'Read models behind',
            value: late.length,
            href: hrefOf('operations'),
            tone: 'bad' as const,
            says:
              late.map(({ name, lag }) => `${name} ${duration(lag.seconds)}`).join(', ') ||
              'By more than 30 s, or with parked events',
          },
        ]),
  ]
}

const HOUR_SECONDS = 3_600
const MINUTE_SECONDS = 60
const FACTS_MAX = 5_000
const SUBJECTS = ['order', 'invoice', 'payment', 'export'] as const

const plotOf = (facts: readonly CloudEvent[], now: number): Plotted => {
  const first = Math.floor(now / MINUTE_SECONDS) * MINUTE_SECONDS - HOUR_SECONDS
  const at = Array.from({ length: HOUR_SECONDS / MINUTE_SECONDS + 1 }, (_, index) => first + index * MINUTE_SECONDS)
  const series = SUBJECTS.map(label => ({ label, values: at.map(() => 0) }))
  for (const { type, time } of facts) {
    const values = series.find(({ label }) => type.startsWith(`${label}.`))?.values
    const index = Math.floor((Date.parse(time) / 1_000 - first) / MINUTE_SECONDS)
    if (values?.[index] !== undefined) values[index] += 1
  }
  return { title: 'Facts per minute, last hour', at, series, text: value => count(Math.round(value)), isStepped: true }
}

export class OverviewPage extends View {
  private timer = 0

  private readonly tiles = new Task(this, {
    args: () => [],
    task: async () =>
      (
        await Promise.all([
          subscriptionTiles(),
          invoiceTiles(),
          otherTiles(),
          installationTiles(),
          asOperator('audit:installation', machineTiles),
        ])
      ).flat(),
  })

  private readonly facts = new Task(this, {
    args: () => [],
    task: async (): Promise<Plotted | undefined> => {
      if (!may('events:read')) return undefined
      const now = Date.now()
      const from_time = new Date(now - HOUR_SECONDS * 1_000).toISOString()
      return plotOf((await readAll('GET /events', { query: { from_time } }, FACTS_MAX)).items, now / 1_000)
    },
  })

  override connectedCallback(): void {
    super.connectedCallback()
    this.timer = window.setInterval(() => {
      if (document.visibilityState === 'visible') void Promise.all([this.tiles.run(), this.facts.run()])
    }, REFRESH_MS)
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback()
    clearInterval(this.timer)
  }

  private tile({ label, value, isMore, href, tone, says }: Tile): unknown {
    return html`<a class="tile ${value === 0 ? '' : tone}" href=${href}>
      <strong>${count(value)}${isMore ? '+' : ''}</strong><span>${label}</span><small>${says}</small></a>`
  }

  protected override render(): unknown {
    return html`<h1>Overview</h1>
      <h2>Needs attention</h2>
      ${shown(this.tiles, tiles => html`<div class="tiles">${tiles.map(tile => this.tile(tile))}</div>`)}
      ${may('events:read') || may('audit:installation') ? html`<h2>The last hour</h2>` : nothing}
      ${shown(this.facts, plotted => (plotted ? html`<time-plot .plotted=${plotted}></time-plot>` : nothing))}
      ${may('audit:installation') ? html`<installation-plots></installation-plots>` : nothing}`
  }
}

define('overview-page', OverviewPage)
