import { type Spread, spreadOf } from './statistics.ts'

/** Line charts as SVG: medians as lines, the range of the rounds as bars. */

export type Point = { readonly x: number; readonly y: Spread }
export type Series = { readonly label: string; readonly points: readonly Point[] }
export type Chart = {
  /** A part of the file's name. */
  readonly name: string
  readonly title: string
  readonly xLabel: string
  readonly yLabel: string
  readonly series: readonly Series[]
}

/** A series from the figures of the rounds at each x. */
export const seriesOf = (
  label: string,
  rounds: readonly (readonly [x: number, figures: readonly number[]])[],
): Series => ({
  label,
  points: rounds.map(([x, figures]) => ({ x, y: spreadOf(figures) })),
})

const [WIDTH, HEIGHT] = [760, 440]
const FRAME = { left: 80, right: 740, top: 48, bottom: 340 } as const
const COLOURS = ['#0b6e4f', '#7fb069', '#c8553d', '#4a5a83', '#8d6a9f', '#c9a227'] as const
const TICKS = 5

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

const tag = (name: string, attributes: Readonly<Record<string, string | number>>, content = ''): string => {
  const listed = Object.entries(attributes).map(([key, value]) => ` ${key}="${escaped(String(value))}"`)
  return `<${name}${listed.join('')}>${content}</${name}>`
}

type Placed = { readonly x: number; readonly y: number; readonly anchor?: string }
const text = ({ x, y, anchor = 'middle' }: Placed, content: string, size = 12): string =>
  tag('text', { x, y, 'text-anchor': anchor, 'font-size': size, fill: '#222' }, escaped(content))

const line = (from: Placed, to: Placed, stroke: string): string =>
  tag('line', { x1: from.x, y1: from.y, x2: to.x, y2: to.y, stroke })

/** The smallest of 1, 2 and 5 times a power of ten that is not below the value. */
const roundUp = (value: number): number => {
  const power = 10 ** Math.floor(Math.log10(value))
  return ([1, 2, 5, 10].find(factor => factor * power >= value) ?? 10) * power
}

type Scale = { readonly x: (value: number) => number; readonly y: (value: number) => number; readonly ticks: number[] }

/** The x axis is logarithmic, since connections and sizes grow by factors; the y axis is linear from zero. */
const scaleOf = ({ series }: Chart): Scale => {
  const points = series.flatMap(({ points: some }) => some)
  const xs = points.map(({ x }) => Math.log2(x))
  const [least, most] = [Math.min(...xs), Math.max(...xs)]
  const highest = Math.max(0, ...points.map(({ y }) => y.max).filter(Number.isFinite)) || 1
  const step = roundUp(highest / TICKS)
  const top = step * Math.ceil(highest / step)
  const share = (value: number): number => (most === least ? 0.5 : (Math.log2(value) - least) / (most - least))
  const rounded = (value: number): number => Math.round(10 * value) / 10
  return {
    x: value => rounded(FRAME.left + 20 + share(value) * (FRAME.right - FRAME.left - 40)),
    y: value => rounded(FRAME.bottom - (value / top) * (FRAME.bottom - FRAME.top)),
    ticks: Array.from({ length: Math.round(top / step) + 1 }, (_, index) => index * step),
  }
}

const axes = ({ xLabel, yLabel, series }: Chart, { x, y, ticks }: Scale): string[] => {
  const xs = [...new Set(series.flatMap(({ points }) => points.map(point => point.x)))]
  const middle = (FRAME.top + FRAME.bottom) / 2
  return [
    ...ticks.flatMap(value => [
      line({ x: FRAME.left, y: y(value) }, { x: FRAME.right, y: y(value) }, '#ddd'),
      text({ x: FRAME.left - 8, y: y(value) + 4, anchor: 'end' }, value.toLocaleString('en-US')),
    ]),
    ...xs.map(value => text({ x: x(value), y: FRAME.bottom + 18 }, value.toLocaleString('en-US'))),
    text({ x: (FRAME.left + FRAME.right) / 2, y: FRAME.bottom + 38 }, xLabel),
    tag('g', { transform: `translate(18 ${middle}) rotate(-90)` }, text({ x: 0, y: 0 }, yLabel)),
  ]
}

const drawn = ({ label, points }: Series, index: number, { x, y }: Scale): string => {
  const stroke = COLOURS[index % COLOURS.length] ?? '#222'
  const shown = points.filter(point => Number.isFinite(point.y.median))
  const legend = { x: FRAME.left + (index % 2) * 330, y: FRAME.bottom + 62 + Math.floor(index / 2) * 20 }
  return tag(
    'g',
    { stroke, 'stroke-width': 2, fill: 'none' },
    [
      tag('polyline', { points: shown.map(point => `${x(point.x)},${y(point.y.median)}`).join(' ') }),
      ...shown.map(point => line({ x: x(point.x), y: y(point.y.min) }, { x: x(point.x), y: y(point.y.max) }, stroke)),
      ...shown.map(point => tag('circle', { cx: x(point.x), cy: y(point.y.median), r: 3, fill: stroke })),
      line(legend, { x: legend.x + 24, y: legend.y }, stroke),
      tag('g', { stroke: 'none' }, text({ x: legend.x + 32, y: legend.y + 4, anchor: 'start' }, label)),
    ].join('\n'),
  )
}

/** A complete SVG document. */
export const svgOf = (chart: Chart): string => {
  const scale = scaleOf(chart)
  const content = [
    tag('title', {}, escaped(chart.title)),
    tag('rect', { width: WIDTH, height: HEIGHT, fill: '#fff' }),
    text({ x: WIDTH / 2, y: 26 }, chart.title, 15),
    ...axes(chart, scale),
    ...chart.series.map((series, index) => drawn(series, index, scale)),
  ]
  const attributes = {
    xmlns: 'http://www.w3.org/2000/svg',
    width: WIDTH,
    height: HEIGHT,
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
  }
  return `${tag('svg', { ...attributes, role: 'img', 'font-family': 'sans-serif' }, `\n${content.join('\n')}\n`)}\n`
}
