import { html, type PropertyValues } from 'lit'
import type uPlot from 'uplot'
import { downloadCsv } from '../csv.ts'
import { define, View } from './view.ts'

/** A plot of series over time, with its figures as CSV and as a table for those who cannot see it. */

export type Plotted = {
  readonly title: string
  /** Unix seconds. */
  readonly at: readonly number[]
  readonly series: readonly { readonly label: string; readonly values: readonly (number | null)[] }[]
  readonly text: (value: number) => string
  readonly isStepped?: boolean
  /** The ends of the time axis, in Unix seconds; those of the values by default. */
  readonly range?: readonly [from: number, to: number]
}

const HEIGHT = 170
const COLOURS = ['--series-1', '--series-2', '--series-3', '--series-4', '--series-5'] as const

const isoOf = (seconds: number): string => new Date(seconds * 1_000).toISOString()

export class TimePlot extends View {
  static override properties = { plotted: { attribute: false } }
  declare plotted: Plotted

  private drawn: uPlot | undefined
  private readonly observer = new ResizeObserver(([entry]) => {
    const width = Math.floor(entry?.contentRect.width ?? 0)
    if (width > 0) this.drawn?.setSize({ width, height: HEIGHT })
  })
  private readonly scheme = matchMedia('(prefers-color-scheme: dark)')
  private readonly redraw = (): void => void this.draw()

  override connectedCallback(): void {
    super.connectedCallback()
    this.scheme.addEventListener('change', this.redraw)
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback()
    this.scheme.removeEventListener('change', this.redraw)
    this.observer.disconnect()
    this.drawn?.destroy()
    this.drawn = undefined
  }

  private options(Plot: typeof uPlot, width: number): uPlot.Options {
    const { series, text, isStepped, range } = this.plotted
    const colour = (name: string): string => getComputedStyle(this).getPropertyValue(name)
    const stepped = isStepped ? Plot.paths.stepped?.({ align: 1 }) : undefined
    const axis = { stroke: colour('--soft'), grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false } }
    return {
      width,
      height: HEIGHT,
      legend: { live: true },
      cursor: { drag: { x: false, y: false } },
      scales: { x: range ? { time: true, range: [range[0], range[1]] } : { time: true } },
      axes: [axis, { ...axis, size: 92, values: (_, splits) => splits.map(text) }],
      series: [
        {},
        ...series.map(({ label }, index) => ({
          label,
          stroke: colour(COLOURS[index % COLOURS.length] ?? ''),
          width: 2,
          points: { show: this.plotted.at.length < 3 },
          value: (_: uPlot, value: number | null) => (value === null ? '–' : text(value)),
          ...(stepped ? { paths: stepped } : {}),
        })),
      ],
    }
  }

  private async draw(): Promise<void> {
    const { default: Plot } = await import('uplot')
    const target = this.querySelector<HTMLElement>('.plot')
    if (target === null || !this.isConnected) return
    this.drawn?.destroy()
    const { at, series } = this.plotted
    const data = [[...at], ...series.map(({ values }) => [...values])] as uPlot.AlignedData
    this.drawn = new Plot(this.options(Plot, Math.max(200, target.clientWidth)), data, target)
    this.observer.observe(target)
  }

  protected override updated(changed: PropertyValues): void {
    if (changed.has('plotted')) void this.draw()
  }

  private readonly writeCsv = (): void => {
    const { title, at, series } = this.plotted
    downloadCsv(
      title.toLowerCase().replaceAll(/\W+/g, '-'),
      ['time', ...series.map(({ label }) => label)],
      at.map((seconds, index) => [isoOf(seconds), ...series.map(({ values }) => values[index] ?? null)]),
    )
  }

  private summary(): string {
    const { title, series, text } = this.plotted
    const last = series.map(({ label, values }) => `${label} ${text(values.findLast(value => value !== null) ?? 0)}`)
    return `${title}. Last values: ${last.join(', ')}.`
  }

  protected override render(): unknown {
    return html`<figure>
      <figcaption><span>${this.plotted.title}</span><button type="button" class="quiet" @click=${this.writeCsv}>CSV</button></figcaption>
      <div class="plot" role="img" aria-label=${this.summary()}></div>
    </figure>`
  }
}

define('time-plot', TimePlot)
