import type { Harness } from './harness.ts'
import { ratioOf, type Spread, spreadOf } from './statistics.ts'

/** The vocabulary of the measures: samples of one side, rounds of both sides, rows of the table. */

/** One side in one round: its operations, its duration, and the latency of each operation. */
export type Sample = { readonly count: number; readonly seconds: number; readonly latenciesMs: readonly number[] }

/** One row of the table. */
export type Row = {
  readonly measure: string
  readonly ours: Spread
  readonly reference?: Spread
  readonly unit: string
  /** Ours divided by the reference. */
  readonly ratio?: Spread
  /** A limit for the median of the ratio or, in a row without a reference, of the figure itself. */
  readonly goal?: Goal
  readonly met?: boolean
  readonly note?: string
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

/** The samples of both sides, round by round. */
export type Comparison = { readonly ours: readonly Sample[]; readonly reference: readonly Sample[] }

/** Runs both sides in alternation, so that other load on the machine affects both. */
export const compareSides = async ({ seconds, rounds }: Size, ours: Side, reference: Side): Promise<Comparison> => {
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
