import type { Harness } from './harness.ts'

/** The sample of one side: its operations, its duration, and the latency of each operation. */
export type Sample = { readonly count: number; readonly seconds: number; readonly latenciesMs: readonly number[] }

/** One row of the table. */
export type Row = {
  readonly measure: string
  readonly ours: number
  readonly reference: number
  readonly unit: string
  /** Ours divided by the reference. */
  readonly ratio: number
  /** A limit for the ratio. Absent for figures without a goal. */
  readonly goal?: Goal
  readonly met?: boolean
  readonly note?: string
}

export type Goal = { readonly atLeast: number } | { readonly atMost: number }

export type Size = {
  /** The duration of each side of a comparison. */
  readonly seconds: number
  /** The number of payments in the log of a rebuild. */
  readonly payments: number
}

export type Measure = {
  /** The name for `--only`. */
  readonly name: string
  /** One sentence for `--help`. */
  readonly description: string
  readonly run: (harness: Harness, size: Size) => Promise<Row[]>
}

/** Both sides alternate in rounds, so that other load on the machine affects both. */
const ROUNDS = 2

export type Side = (seconds: number) => Promise<Sample>

/** Runs both sides in alternation, each for `seconds` in total. */
export const compareSides = async (
  seconds: number,
  ours: Side,
  reference: Side,
): Promise<{ ours: Sample; reference: Sample }> => {
  const samples: { ours: Sample; reference: Sample }[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const second = await reference(seconds / ROUNDS)
    samples.push({ ours: await ours(seconds / ROUNDS), reference: second })
  }
  return {
    ours: mergeSamples(samples.map(sample => sample.ours)),
    reference: mergeSamples(samples.map(sample => sample.reference)),
  }
}

const mergeSamples = (samples: readonly Sample[]): Sample => ({
  count: samples.reduce((sum, { count }) => sum + count, 0),
  seconds: samples.reduce((sum, { seconds }) => sum + seconds, 0),
  latenciesMs: samples.flatMap(({ latenciesMs }) => latenciesMs),
})

export const perSecond = ({ count, seconds }: Sample): number => count / seconds

/** The latency percentile at `share`, from 0 to 1. */
export const percentile = ({ latenciesMs }: Sample, share: number): number => {
  const sorted = Float64Array.from(latenciesMs).sort()
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

const isMet = (value: number, goal: Goal): boolean => ('atLeast' in goal ? value >= goal.atLeast : value <= goal.atMost)

type Figures = Pick<Row, 'measure' | 'ours' | 'reference' | 'unit'> & { readonly goal?: Goal; readonly note?: string }

export const rowOf = (figures: Figures): Row => {
  const ratio = figures.ours / figures.reference
  return { ...figures, ratio, ...(figures.goal && { met: isMet(ratio, figures.goal) }) }
}

/** Latencies for a note, such as `p50 3.1 ms, p99 9.8 ms`. */
export const latencyNote = (sample: Sample): string =>
  `p50 ${percentile(sample, 0.5).toFixed(1)} ms, p99 ${percentile(sample, 0.99).toFixed(1)} ms`

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
