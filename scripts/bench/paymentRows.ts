import { PARTS_PER_INVOICE } from './apiClient.ts'
import { appendLoad } from './appendLoad.ts'
import { COUNTED, type Cpu, PROCESSES, totalOf } from './processes.ts'
import type { Harness, RunningService } from './harness.ts'
import {
  type Goal,
  latencyNote,
  medianOf,
  percentile,
  perSecond,
  type Row,
  rowOf,
  type Sample,
  type Side,
  type Size,
} from './measure.ts'
import type { PaidSample } from './paymentSides.ts'
import { singleInserts } from './pgbench.ts'

export type Round = {
  readonly emmett: Sample
  readonly express: Sample
  readonly plain: PaidSample
  readonly referenced: PaidSample
}
/** The rounds by number of connections. */
type Measured = ReadonlyMap<number, readonly Round[]>
type Running = { readonly harness: Harness; readonly service: RunningService }

const CONNECTIONS_MAX = 64
/** The number of connections at which the latencies of the slowest are compared. */
const TAIL_CONNECTIONS = 16
const WARM_SECONDS = 1

const KINDS = [
  { kind: 'plain', words: 'no reference' },
  { kind: 'referenced', words: 'with reference' },
] as const
type Kind = (typeof KINDS)[number]['kind']

const AGAINST_EMMETT: Readonly<Record<Kind, Readonly<Record<number, Goal>>>> = {
  plain: { 16: { atLeast: 0.8 }, 64: { atLeast: 1 } },
  referenced: { 16: { atLeast: 0.8 }, 64: { atLeast: 0.8 } },
}
const AGAINST_EXPRESS = { atLeast: 0.25 }
const AGAINST_INSERT = { atLeast: 0.08 }
const TAIL = { atMost: 4 }
const P50_AT_ONE_MS = { atMost: 4 }
const CPU_GOALS_MS: Readonly<Partial<Record<string, Goal>>> = {
  service: { atMost: 0.7 },
  'all processes': { atMost: 1.6 },
}

const connectionsText = (count: number): string => (count === 1 ? '1 connection' : `${count} connections`)
const rates = (samples: readonly Sample[]): number[] => samples.map(perSecond)
const percentilesOf = (samples: readonly Sample[], share: number): number[] =>
  samples.map(sample => percentile(sample, share))

const emmettRow = (connections: number, rounds: readonly Round[], { kind, words }: (typeof KINDS)[number]): Row => {
  const [ours, emmett] = [rounds.map(round => round[kind]), rounds.map(round => round.emmett)]
  return rowOf({
    measure: `POST /payments, ${connectionsText(connections)}, ${words}`,
    ours: rates(ours),
    reference: rates(emmett),
    unit: '/s',
    goal: AGAINST_EMMETT[kind][connections],
    note: `${latencyNote(ours)}; Emmett + Express, one bare append: ${latencyNote(emmett)}`,
  })
}

const expressRow = (connections: number, rounds: readonly Round[]): Row => {
  const express = rounds.map(round => round.express)
  return rowOf({
    measure: `POST /payments, ${connectionsText(connections)}, against Express`,
    ours: rates(rounds.map(({ plain }) => plain)),
    reference: rates(express),
    unit: '/s',
    goal: connections === CONNECTIONS_MAX ? AGAINST_EXPRESS : undefined,
    note: `bare Express + JWT + zod echo: ${latencyNote(express)}`,
  })
}

const p50Rows = (measured: Measured): Row[] =>
  KINDS.map(({ kind, words }) =>
    rowOf({
      measure: `POST /payments, p50 at one connection, ${words}`,
      ours: percentilesOf(
        (measured.get(1) ?? []).map(round => round[kind]),
        0.5,
      ),
      unit: 'ms',
      goal: kind === 'plain' ? P50_AT_ONE_MS : undefined,
    }),
  )

/** Throughput at each number of connections, and the latency at one. */
export const ratesRows = ({ publishes }: RunningService, measured: Measured): Row[] => {
  const rows = [...measured].flatMap(([connections, rounds]) => [
    ...KINDS.map(kind => emmettRow(connections, rounds, kind)),
    expressRow(connections, rounds),
  ])
  const publishing = publishes ? 'publishing to Kafka' : 'without a publisher, since there is no Kafka broker'
  const note = `one invoice for ${PARTS_PER_INVOICE} payments, each with its own key; projections on, ${publishing}`
  return [...rows.map((row, at) => (at === 0 ? { ...row, note: `${row.note}; ${note}` } : row)), ...p50Rows(measured)]
}

const cpusOf = (rounds: readonly Round[], kind: Kind): Cpu[] =>
  rounds.flatMap(round => (round[kind].cpu === undefined ? [] : [round[kind].cpu]))

/** The medians of the processes, such as `service 1.23, event store 0.70`. */
const cpuText = (cpus: readonly Cpu[]): string =>
  PROCESSES.filter(name => cpus.some(cpu => cpu[name] !== undefined))
    .map(name => `${name} ${medianOf(cpus.map(cpu => cpu[name] ?? 0)).toFixed(2)}`)
    .join(', ')

/** CPU time of a payment by process; none where the times cannot be read. */
export const cpuRows = (measured: Measured): Row[] => {
  const cpus = cpusOf(measured.get(CONNECTIONS_MAX) ?? [], 'plain')
  if (cpus.length === 0) return []
  const others = [...measured].flatMap(([connections, rounds]) =>
    KINDS.map(({ kind, words }) => `at ${connections} ${words}: ${cpuText(cpusOf(rounds, kind))}`),
  )
  const row = (name: string, ours: readonly number[], note?: string): Row =>
    rowOf({
      measure: `CPU of a payment at ${CONNECTIONS_MAX} connections, ${name}`,
      ours,
      unit: 'ms',
      goal: CPU_GOALS_MS[name],
      note,
    })
  const measuredNames = PROCESSES.filter(name => cpus.every(cpu => cpu[name] !== undefined))
  return [
    ...measuredNames.map(name =>
      row(
        name,
        cpus.map(cpu => cpu[name] ?? 0),
      ),
    ),
    row('all processes', cpus.map(totalOf), `${COUNTED.join(', ')}; without Kafka and generator; ${others.join('; ')}`),
  ]
}

/** The p99 at 16 connections against that of one append through the client, on the same store. */
export const appendTails = async (
  { harness, service }: Running,
  measured: Measured,
  { seconds, rounds }: Size,
): Promise<Row[]> => {
  harness.log('bare appends')
  const appends = appendLoad(service.addresses.event_store, TAIL_CONNECTIONS)
  try {
    await appends.side(WARM_SECONDS)
    const samples = await repeated(rounds, seconds / rounds, appends.side)
    await appends.check()
    const row = rowOf({
      measure: `POST /payments, p99 at ${TAIL_CONNECTIONS}`,
      ours: percentilesOf(
        (measured.get(TAIL_CONNECTIONS) ?? []).map(({ plain }) => plain),
        0.99,
      ),
      reference: percentilesOf(samples, 0.99),
      unit: 'ms',
      goal: TAIL,
      note: `against one append through the client, ${TAIL_CONNECTIONS} in flight, on the same store: ${latencyNote(samples)}`,
    })
    return [row]
  } finally {
    await appends.close()
  }
}

const repeated = async (rounds: number, seconds: number, side: Side): Promise<Sample[]> => {
  const samples: Sample[] = []
  while (samples.length < rounds) samples.push(await side(seconds))
  return samples
}

/** Durable payments against durable rows on the same Postgres server. */
export const insertRows = async (
  { harness, service }: Running,
  measured: Measured,
  { seconds, rounds }: Size,
): Promise<Row[]> => {
  harness.log('single-row inserts')
  const { side, by } = await singleInserts(service.addresses.postgres, harness.file('insert.sql'))
  return [
    rowOf({
      measure: `POST /payments, ${CONNECTIONS_MAX} connections, durable`,
      ours: rates((measured.get(CONNECTIONS_MAX) ?? []).map(({ plain }) => plain)),
      reference: rates(await repeated(rounds, seconds / rounds, side)),
      unit: '/s',
      goal: AGAINST_INSERT,
      note: `against single-row inserts by ${by}, same Postgres server`,
    }),
  ]
}
