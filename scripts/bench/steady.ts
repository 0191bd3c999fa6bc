import { callerOf, PARTS_PER_INVOICE } from './apiClient.ts'
import { latencyNote, type Measure, percentile, perSecond, type Row, rowOf, type Sample } from './measure.ts'
import { partsOf, pay } from './paymentSides.ts'

const CONNECTIONS = 64
const WARM_SECONDS = 3
const FASTEST_SECONDS = 5
const PER_SECOND_MAX = 3_000
const SECONDS_MIN = 60
const LOAD_SHARE = 0.5
const P99_MS = { atMost: 25 }
const LONGEST_MS = { atMost: 100 }
const WORST_SHOWN = 8

/** Each second of a load at a constant rate, by the requests that were due in it. */
const secondsOf = ({ latenciesMs }: Sample, rate: number) =>
  [...Map.groupBy(latenciesMs.entries(), ([at]) => Math.floor(at / rate))].map(([second, entries]) => {
    const own = entries.map(([, latencyMs]) => latencyMs)
    return {
      second,
      p99Ms: percentile({ latenciesMs: own }, 0.99),
      maxMs: Math.max(...own),
      late: own.filter(latencyMs => latencyMs > P99_MS.atMost).length,
    }
  })

const worstNote = (seconds: ReturnType<typeof secondsOf>): string => {
  const late = seconds.filter(({ maxMs }) => maxMs > P99_MS.atMost)
  const worst = late.toSorted((a, b) => b.maxMs - a.maxMs).slice(0, WORST_SHOWN)
  const shown = worst.map(({ second, maxMs, late }) => `${second}: ${maxMs.toFixed(0)} (${late})`)
  return `${late.length} of ${seconds.length} seconds above ${P99_MS.atMost} ms, the worst in ms (payments above): ${shown.join(', ')}`
}

const rowsOf = (sample: Sample, rate: number, highest: number, seconds: ReturnType<typeof secondsOf>): Row[] => {
  const measure = `POST /payments at a constant ${rate.toFixed(0)}/s`
  const note = `half of ${highest.toFixed(0)}/s at ${CONNECTIONS} connections, for ${sample.seconds.toFixed(0)} s, waiting counted`
  return [
    rowOf({
      measure: `${measure}, p99`,
      ours: [percentile(sample, 0.99)],
      unit: 'ms',
      goal: P99_MS,
      note: `${latencyNote([sample])}; ${note}`,
    }),
    rowOf({
      measure: `${measure}, longest`,
      ours: [percentile(sample, 1)],
      unit: 'ms',
      goal: LONGEST_MS,
      note: worstNote(seconds),
    }),
  ]
}

const run: Measure['run'] = async (harness, size) => {
  const service = await harness.service()
  const caller = await callerOf(service)
  const paid = async (seconds: number, rate?: number): Promise<Sample> => {
    const payments = (rate ?? PER_SECOND_MAX) * seconds
    const invoices = await caller.invoices(Math.ceil(payments / PARTS_PER_INVOICE) + CONNECTIONS)
    await caller.untilFeedsCaughtUp()
    const next = partsOf(invoices, CONNECTIONS, false)
    const load = { connections: CONNECTIONS, next, ...(rate !== undefined && { perSecond: rate }) }
    return pay(service.addresses, caller, load)(seconds)
  }
  harness.log('measuring the highest rate of POST /payments')
  await paid(WARM_SECONDS)
  const highest = perSecond(await paid(FASTEST_SECONDS))
  const rate = highest * LOAD_SHARE
  const seconds = Math.max(size.seconds, SECONDS_MIN)
  harness.log(`POST /payments at a constant ${rate.toFixed(0)}/s for ${seconds} s`)
  const sample = await paid(seconds, rate)
  await caller.checkAnswers()
  const bySecond = secondsOf(sample, rate)
  return { rows: rowsOf(sample, rate, highest, bySecond), details: { steady: { rate, highest, seconds: bySecond } } }
}

export const steady: Measure = {
  name: 'steady',
  description:
    `POST /payments for at least ${SECONDS_MIN} s at half of the highest rate, which is measured first. Requests are due at ` +
    'constant intervals, whether or not earlier ones are answered, and latencies count from then. The worst seconds are listed.',
  run,
}
