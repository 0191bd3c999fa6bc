import { html, svg, type TemplateResult } from 'lit'
import { words } from '../format.ts'

/** The states of a resource and the ways between them, with the present one marked. */

type Diagram = {
  readonly states: Readonly<Record<string, readonly [x: number, y: number]>>
  readonly ways: readonly (readonly [from: string, to: string])[]
}

export const DIAGRAMS: Readonly<Record<'order' | 'invoice' | 'payment', Diagram>> = {
  order: {
    states: { open: [0, 0], invoiced: [1, 0], completed: [2, 0], cancelled: [1, 1] },
    ways: [
      ['open', 'invoiced'],
      ['invoiced', 'completed'],
      ['open', 'cancelled'],
    ],
  },
  invoice: {
    states: { draft: [0, 0], approved: [1, 0], partially_paid: [2, 0], paid: [3, 0], voided: [1, 1] },
    ways: [
      ['draft', 'approved'],
      ['approved', 'partially_paid'],
      ['partially_paid', 'paid'],
      ['draft', 'voided'],
      ['approved', 'voided'],
    ],
  },
  payment: {
    states: { pending: [0, 0], succeeded: [1, 0], partially_refunded: [2, 0], refunded: [3, 0], failed: [1, 1] },
    ways: [
      ['pending', 'succeeded'],
      ['succeeded', 'partially_refunded'],
      ['partially_refunded', 'refunded'],
      ['pending', 'failed'],
    ],
  },
}

const [WIDTH, HEIGHT, GAP_X, GAP_Y] = [112, 26, 22, 14]

const cornerOf = ([x, y]: readonly [number, number]): readonly [number, number] => [
  1 + x * (WIDTH + GAP_X),
  1 + y * (HEIGHT + GAP_Y),
]

const way = (diagram: Diagram, [from, to]: readonly [string, string]): TemplateResult => {
  const [x1, y1] = cornerOf(diagram.states[from] ?? [0, 0])
  const [x2, y2] = cornerOf(diagram.states[to] ?? [0, 0])
  const middle = HEIGHT / 2
  if (x1 === x2) return svg`<path d="M${x1 + WIDTH / 2} ${y1 + HEIGHT}V${y2 - 1}m-3 -5l3 5l3 -5"/>`
  const start = y1 === y2 ? `M${x1 + WIDTH} ${y1 + middle}` : `M${x1 + WIDTH / 2} ${y1 + HEIGHT}V${y2 + middle}`
  return svg`<path d="${start}H${x2 - 1}m-5 -3l5 3l-5 3"/>`
}

export const stateDiagram = (kind: keyof typeof DIAGRAMS, present: string): TemplateResult => {
  const diagram = DIAGRAMS[kind]
  const columns = Math.max(...Object.values(diagram.states).map(([x]) => x)) + 1
  const width = columns * (WIDTH + GAP_X) - GAP_X + 2
  return html`<svg class="states" role="img" aria-label="The ${kind} is ${words(present)}." viewBox="0 0 ${width} ${2 * HEIGHT + GAP_Y + 2}">
    ${diagram.ways.map(one => way(diagram, one))}
    ${Object.entries(diagram.states).map(([name, at]) => {
      const [x, y] = cornerOf(at)
      return svg`<g class="${name === present ? 'present' : ''}"><rect x="${x}" y="${y}" width="${WIDTH}" height="${HEIGHT}" rx="6"/>
        <text x="${x + WIDTH / 2}" y="${y + HEIGHT / 2}">${words(name)}</text></g>`
    })}
  </svg>`
}
