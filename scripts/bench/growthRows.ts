import { READS, type ReadName } from './growthReads.ts'
import { type Goal, type Row, rowOf } from './measure.ts'

/** The limits of a cost at the largest size, divided by that at the smallest. */
const TIME = { atMost: 1.2 } as const
const MEMORY = { atMost: 1.3 } as const
const READY_MAX_S = { atMost: 5 } as const
const STORE_MAX_MB = { atMost: 300 } as const
const IDLE_MAX_PERCENT = { atMost: 1 } as const

type Definition = {
  readonly words: string
  readonly unit: string
  /** Shown beside that of the smallest size without a limit. */
  readonly compared?: true
  /** The limit of the ratio. */
  readonly flat?: Goal
  /** The limit at the largest size. */
  readonly limit?: Goal
  readonly note?: string
}

const DEFINITIONS = {
  payOne: { words: 'POST /payments, p50 at 1 connection', unit: 'ms', flat: TIME },
  payMany: { words: 'POST /payments, p50 at 16 connections', unit: 'ms', flat: TIME },
  payCpu: { words: 'POST /payments, CPU of all processes', unit: 'ms', flat: TIME, note: 'at 16 connections' },
  export: { words: 'export of all payments (csv), time of a row', unit: 'µs', flat: TIME },
  exportCpu: { words: 'export of all payments (csv), CPU of a row', unit: 'µs', flat: TIME },
  rebuild: { words: 'rebuild of the read models, time of an event', unit: 'µs', flat: TIME },
  ready: { words: 'start on existing data, until ready', unit: 's', flat: TIME, limit: READY_MAX_S },
  idle: { words: 'idle, CPU of all processes', unit: '% of a core', limit: IDLE_MAX_PERCENT },
  service: { words: 'memory of the service', unit: 'MB', flat: MEMORY },
  'event store': { words: 'memory of the event store', unit: 'MB', flat: MEMORY, limit: STORE_MAX_MB },
  Postgres: {
    words: 'memory of Postgres, without its cache',
    unit: 'MB',
    flat: MEMORY,
    note: 'all its processes; memory that they share counts once',
  },
  cache: {
    words: "Postgres' cache",
    unit: 'MB',
    compared: true,
    note: 'shared_buffers: it fills up to 256 MB, and no further',
  },
  logBytes: { words: 'bytes on disk a payment, log', unit: 'B', flat: TIME },
  modelBytes: { words: 'bytes on disk a payment, read models', unit: 'B', flat: TIME },
} as const satisfies Readonly<Record<string, Definition>>

export type FigureName = keyof typeof DEFINITIONS | ReadName | `${ReadName}Cpu`

/** The figures of one size: one of each round. */
export type Figures = Map<FigureName, number[]>
export type SizeFigures = { readonly payments: number; readonly events: number; readonly figures: Figures }

const readDefinitions = Object.entries(READS).flatMap(([name, words]): (readonly [FigureName, Definition])[] => [
  [name as ReadName, { words: `${words}, p50`, unit: 'ms', flat: TIME }],
  [`${name as ReadName}Cpu`, { words: `${words}, CPU of all processes`, unit: 'ms', flat: TIME }],
])
const ALL: readonly (readonly [FigureName, Definition])[] = [
  ...readDefinitions,
  ...(Object.entries(DEFINITIONS) as [keyof typeof DEFINITIONS, Definition][]),
]

const figuresOf = ({ figures }: SizeFigures, name: FigureName): readonly number[] => figures.get(name) ?? []

/** Two rows for a figure with a limit of its own at the largest size. */
const rowsOfFigure = (name: FigureName, definition: Definition, sizes: readonly SizeFigures[]): Row[] => {
  const [smallest, largest] = [sizes[0], sizes.at(-1)]
  if (smallest === undefined || largest === undefined || figuresOf(largest, name).length === 0) return []
  const { words, unit, flat, compared, limit, note } = definition
  const ours = figuresOf(largest, name)
  const both = { measure: words, unit, ours, reference: figuresOf(smallest, name), note }
  const against = limit && rowOf({ measure: `${words}, at the largest size`, unit, ours, goal: limit })
  return [...(flat || compared ? [rowOf({ ...both, goal: flat })] : []), ...(against ? [against] : [])]
}

export const growthRows = (sizes: readonly SizeFigures[]): Row[] =>
  ALL.flatMap(([name, definition]) => rowsOfFigure(name, definition, sizes))
