import { aligned } from '../ledger/table.ts'
import type { Harness } from './harness.ts'

/** One side in one round: its operations, its duration, and the latency of each operation. */
export type Sample = { readonly count: number; readonly seconds: number; readonly latenciesMs: readonly number[] }

/** The figures of several rounds; their range shows how noisy the machine was. */
export type Spread = {
  readonly median: number
  readonly min: number
  readonly max: number
  /** In the order in which they were measured. */
  readonly rounds: readonly number[]
}

/** The mean of the middle two if their number is even; NaN if there are none. */
export const medianOf = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const upper = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
  const lower = sorted[Math.ceil(sorted.length / 2) - 1] ?? Number.NaN
  return (lower + upper) / 2
}

export const spreadOf = (rounds: readonly number[]): Spread => ({
  median: medianOf(rounds),
  min: Math.min(...rounds),
  max: Math.max(...rounds),
  rounds,
})

/** Round by round, since both sides of a round had the same machine; of medians if the rounds have no partners. */
export const ratioOf = (ours: readonly number[], reference: readonly number[]): Spread =>
  ours.length === reference.length
    ? spreadOf(ours.map((value, round) => value / (reference[round] ?? Number.NaN)))
    : spreadOf([medianOf(ours) / medianOf(reference)])

export type Row = {
  readonly measure: string
  readonly ours: Spread
  readonly reference?: Spread
  readonly unit: string
  /** Ours divided by the reference. */
  readonly ratio?: Spread
  /** A limit for the median of the ratio or, in a row without a reference, of the figure itself. */
  readonly goal?: Goal | undefined
  readonly met?: boolean
  readonly note?: string | undefined
}

export type Goal = { readonly atLeast: number } | { readonly atMost: number }

export type Size = {
  /** The duration of each side of a comparison, over all rounds. */
  readonly seconds: number
  readonly rounds: number
  /** The number of payments in the log of a rebuild. */
  readonly payments: number
  /** The number of payments that are made in order to be read. */
  readonly paymentsToRead: number
  /** The numbers of payments whose costs are compared. */
  readonly sizes: readonly number[]
}

/** The titles of the columns of figures, where they are not ours and a reference's. */
export type Columns = { readonly ours: string; readonly reference: string }

export type Result = {
  readonly rows: readonly Row[]
  readonly columns?: Columns
  /** Further figures for the JSON file. */
  readonly details?: Readonly<Record<string, unknown>>
}

export type Measure = {
  /** The name for `--only`. */
  readonly name: string
  /** One sentence for `--help`. */
  readonly description: string
  /** Throws if the answers were wrong, because figures of wrong answers mean nothing. */
  readonly run: (harness: Harness, size: Size) => Promise<Result>
}

export type Side = (seconds: number) => Promise<Sample>

/** Runs both sides in alternation, so that other load on the machine affects both. */
export const compareSides = async ({ seconds, rounds }: Size, ours: Side, reference: Side) => {
  const samples: { readonly ours: Sample[]; readonly reference: Sample[] } = { ours: [], reference: [] }
  for (let round = 0; round < rounds; round++) {
    samples.reference.push(await reference(seconds / rounds))
    samples.ours.push(await ours(seconds / rounds))
  }
  return samples
}

export const perSecond = ({ count, seconds }: Sample): number => count / seconds

/** The latency percentile at `share`, from 0 to 1. */
export const percentile = ({ latenciesMs }: Pick<Sample, 'latenciesMs'>, share: number): number => {
  const sorted = Float64Array.from(latenciesMs).sort()
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

const isMet = (value: number, goal: Goal): boolean => ('atLeast' in goal ? value >= goal.atLeast : value <= goal.atMost)

type Figures = Pick<Row, 'measure' | 'unit' | 'goal' | 'note'> & {
  /** One figure of each round. */
  readonly ours: readonly number[]
  readonly reference?: readonly number[]
}

export const rowOf = ({ ours, reference, ...others }: Figures): Row => {
  const ratio = reference && ratioOf(ours, reference)
  const judged = (ratio ?? spreadOf(ours)).median
  return {
    ...others,
    ours: spreadOf(ours),
    ...(reference && { reference: spreadOf(reference) }),
    ...(ratio && { ratio }),
    ...(others.goal && { met: isMet(judged, others.goal) }),
  }
}

/** Latencies of all rounds for a note, such as `p50 3.1 ms, p99 9.8 ms`. */
export const latencyNote = (samples: readonly Sample[]): string => {
  const all = { latenciesMs: samples.flatMap(({ latenciesMs }) => latenciesMs) }
  return `p50 ${percentile(all, 0.5).toFixed(1)} ms, p99 ${percentile(all, 0.99).toFixed(1)} ms`
}

/** Keeps `lanes` operations in flight until the time is over. */
export const inFlight = async (lanes: number, seconds: number, work: () => Promise<void>): Promise<Sample> => {
  const latenciesMs: number[] = []
  const begun = performance.now()
  const end = begun + seconds * 1000
  const lane = async (): Promise<void> => {
    for (let at = performance.now(); at < end; ) {
      await work()
      const now = performance.now()
      latenciesMs.push(now - at)
      at = now
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  return { count: latenciesMs.length, seconds: (performance.now() - begun) / 1000, latenciesMs }
}

const TITLES: Columns = { ours: 'ours', reference: 'reference' }
const NOTHING = '–'
const RATIO_DIGITS = 2

const figure = (value: number): string =>
  value.toLocaleString('en-US', { maximumFractionDigits: value < 10 ? 2 : value < 100 ? 1 : 0 })

const withRange = ({ median, min, max, rounds }: Spread, text: (value: number) => string, unit = ''): string =>
  rounds.length > 1 ? `${text(median)}${unit} (${text(min)}–${text(max)})` : `${text(median)}${unit}`

const goalText = (goal: Goal | undefined, unit: string): string => {
  if (goal === undefined) return NOTHING
  return 'atLeast' in goal ? `≥ ${figure(goal.atLeast)}${unit}` : `≤ ${figure(goal.atMost)}${unit}`
}

const cellsOf = ({ measure, ours, reference, unit, ratio, goal, met }: Row): string[] => [
  measure,
  withRange(ours, figure, ` ${unit}`),
  reference ? withRange(reference, figure, ` ${unit}`) : NOTHING,
  ratio ? withRange(ratio, value => value.toFixed(RATIO_DIGITS)) : NOTHING,
  goalText(goal, ratio ? '' : ` ${unit}`),
  met === undefined ? NOTHING : met ? 'yes' : 'NO',
]

/** The table with medians and their ranges, followed by an explanation of each row. */
export const tableOf = (rows: readonly Row[], { ours, reference }: Columns = TITLES): string => {
  const titles = ['measure', ours, reference, 'ratio', 'goal', 'met?']
  const cells = [titles, ...rows.map(cellsOf)]
  const notes = rows.flatMap(({ measure, note }) => (note === undefined ? [] : [`  ${measure}: ${note}`]))
  return [...aligned(cells, 'right'), '', ...notes].join('\n')
}
