import { html, nothing } from 'lit'
import type { Installation } from '../../../scripts/client/src/generated.ts'
import { ApiError, read } from '../api.ts'
import '../elements/plot.ts'
import type { Plotted } from '../elements/plot.ts'
import { define, failure, loading, View } from '../elements/view.ts'
import { count } from '../format.ts'
import { may } from '../session.ts'

/**
 * How the installation answers its requests, for operators. The service has counters since it began; what happened
 * between two readings is their difference. The readings of the last hour are kept while the console is open.
 */

const EVERY_MS = 10_000
const HOUR_SECONDS = 3_600

type Reading = {
  readonly at: number
  readonly durations: Installation['request_durations']
  readonly lagSeconds: number | null
}
/** What happened since the reading before. */
type Interval = {
  readonly at: number
  readonly perSecond: number
  readonly percentiles: readonly (number | null)[]
  readonly errors: ReadonlyMap<string, number>
  readonly lagSeconds: number | null
}

const PERCENTILES = [0.5, 0.95, 0.99] as const

const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0)

/** The duration that this part of the requests took at most, between the boundaries of its bucket. Milliseconds. */
const percentile = (
  part: number,
  boundaries: readonly number[],
  within: readonly number[],
  total: number,
): number | null => {
  if (total === 0) return null
  const wanted = part * total
  const index = within.findIndex(requests => requests >= wanted)
  const last = boundaries.at(-1) ?? 0
  if (index === -1) return last * 1_000
  const [low, high] = [boundaries[index - 1] ?? 0, boundaries[index] ?? last]
  const [before, upTo] = [within[index - 1] ?? 0, within[index] ?? total]
  return (low + ((high - low) * (wanted - before)) / Math.max(1, upTo - before)) * 1_000
}

/** Undefined if the counters began anew in between, as when a process was replaced. */
const intervalOf = (before: Reading, after: Reading): Interval | undefined => {
  const earlier = new Map(before.durations.series.map(one => [`${one.status_class} ${one.error_code}`, one]))
  const changes = after.durations.series.map(one => {
    const old = earlier.get(`${one.status_class} ${one.error_code}`)
    return {
      code: one.error_code,
      requests: one.requests - (old?.requests ?? 0),
      within: one.within.map((requests, index) => requests - (old?.within[index] ?? 0)),
    }
  })
  if (changes.some(({ requests }) => requests < 0)) return undefined
  const boundaries = after.durations.boundaries_seconds
  const within = boundaries.map((_, index) => sumOf(changes.map(change => change.within[index] ?? 0)))
  const total = sumOf(changes.map(({ requests }) => requests))
  return {
    at: after.at,
    perSecond: total / Math.max(1, after.at - before.at),
    percentiles: PERCENTILES.map(part => percentile(part, boundaries, within, total)),
    errors: new Map(
      changes.flatMap(({ code, requests }) => (code !== null && requests > 0 ? [[code, requests] as const] : [])),
    ),
    lagSeconds: after.lagSeconds,
  }
}

let last: Reading | undefined
let intervals: readonly Interval[] = []

const lagSeconds = async (): Promise<number | null> => {
  if (!may('projections:operate')) return null
  return Math.max(0, ...(await read('GET /projections')).items.map(({ lag }) => lag.seconds))
}

const takeReading = async (): Promise<void> => {
  const [{ request_durations: durations }, lag] = await Promise.all([read('GET /installation'), lagSeconds()])
  const reading = { at: Date.now() / 1_000, durations, lagSeconds: lag }
  const interval = last && intervalOf(last, reading)
  last = reading
  if (interval) intervals = [...intervals, interval].filter(({ at }) => at > reading.at - HOUR_SECONDS)
}

const CODES_MAX = 5

const plotsOf = (): readonly Plotted[] => {
  const at = intervals.map(interval => interval.at)
  const codes = [...new Set(intervals.flatMap(({ errors }) => [...errors.keys()]))].slice(0, CODES_MAX)
  const text = (unit: string) => (value: number) => `${count(Math.round(value * 10) / 10)} ${unit}`
  return [
    {
      title: 'Requests',
      at,
      text: text('/s'),
      series: [{ label: 'requests', values: intervals.map(one => one.perSecond) }],
    },
    {
      title: 'Duration of requests',
      at,
      text: text('ms'),
      series: PERCENTILES.map((part, index) => ({
        label: `p${part * 100}`,
        values: intervals.map(one => one.percentiles[index] ?? null),
      })),
    },
    {
      title: 'Errors by code',
      at,
      text: text(''),
      series: (codes.length === 0 ? ['none'] : codes).map(code => ({
        label: code,
        values: intervals.map(({ errors }) => errors.get(code) ?? 0),
      })),
    },
    {
      title: 'Lag of the read models',
      at,
      text: text('s'),
      series: [{ label: 'slowest', values: intervals.map(one => one.lagSeconds) }],
    },
  ]
}

export class InstallationPlots extends View {
  static override properties = { error: { state: true }, isRefused: { state: true } }
  declare private error: unknown
  declare private isRefused: boolean
  private timer = 0

  private readonly next = async (): Promise<void> => {
    if (this.isRefused) return
    try {
      await takeReading()
      this.error = undefined
    } catch (error) {
      this.isRefused = error instanceof ApiError && error.code === 'policy_denied'
      this.error = error
    }
    this.requestUpdate()
  }

  override connectedCallback(): void {
    super.connectedCallback()
    void this.next()
    this.timer = window.setInterval(this.next, EVERY_MS)
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback()
    clearInterval(this.timer)
  }

  protected override render(): unknown {
    if (this.isRefused) return nothing
    if (this.error !== undefined) return failure(this.error, this.next)
    if (last === undefined) return loading
    if (intervals.length === 0)
      return html`<p class="empty" role="status">Requests, their durations and errors appear here from the second reading on, in ${EVERY_MS / 1_000} s.</p>`
    return html`<div class="plots">${plotsOf().map(plotted => html`<time-plot .plotted=${plotted}></time-plot>`)}</div>`
  }
}

define('installation-plots', InstallationPlots)
