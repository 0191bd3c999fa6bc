import { appendLoad } from './appendLoad.ts'
import { type Caller, callerOf, PARTS_PER_INVOICE, payingRequests, paymentRequest, waitForFeeds } from './apiClient.ts'
import { load } from './loadGenerator.ts'
import {
  compareSides,
  latencyNote,
  type Measure,
  percentile,
  perSecond,
  type Row,
  rowOf,
  type Sample,
  type Side,
} from './measure.ts'
import { singleInserts } from './pgbench.ts'
import type { RunningService, Harness } from './harness.ts'

/** Benchmark: POST /payments against bare Express, one append, and single-row inserts. */

const CREATED = 201
const CONNECTIONS = [1, 16, 64] as const
const CONNECTIONS_MAX = 64
/** The number of connections at which latencies are compared. */
const LATENCY_CONNECTIONS = 16
/** Payments per second for which invoices are prepared. A faster run ends early for lack of invoices. */
const PER_SECOND_MAX: Readonly<Record<number, number>> = { 1: 600, 16: 2_000, 64: 2_400 }
const WARM_SECONDS = 2

const AGAINST_EXPRESS = { atLeast: 0.35 }
const AGAINST_INSERT = { atLeast: 0.08 }
const TAIL = { atMost: 6 }

type Bench = {
  readonly harness: Harness
  readonly service: RunningService
  readonly bareExpress: string
  readonly caller: Caller
}

const paying = async ({ harness, service, caller }: Bench, connections: number, seconds: number): Promise<Side> => {
  const payments = (PER_SECOND_MAX[connections] ?? 0) * seconds
  const count = Math.ceil(payments / PARTS_PER_INVOICE) + connections
  harness.log(`preparing ${count} approved invoices`)
  const invoices = await caller.invoices(count)
  await waitForFeeds(service)
  const next = payingRequests(caller.headers, invoices, connections)
  return async each => load({ base: service.addresses.api, connections, seconds: each, next, status: CREATED })
}

const echoing = ({ bareExpress, caller }: Bench, connections: number): Side => {
  const invoice = `inv_${'0'.repeat(26)}`
  const next = (): string => paymentRequest(caller.headers, invoice)
  return seconds => load({ base: bareExpress, connections, seconds, next, status: CREATED })
}

const warmUp = async (bench: Bench): Promise<void> => {
  bench.harness.log('warming up')
  await echoing(bench, CONNECTIONS_MAX)(WARM_SECONDS)
  await (await paying(bench, CONNECTIONS_MAX, WARM_SECONDS))(WARM_SECONDS)
}

const againstExpress = async (
  bench: Bench,
  connections: number,
  seconds: number,
): Promise<{ row: Row; ours: Sample }> => {
  const ours = await paying(bench, connections, seconds)
  bench.harness.log(`POST /payments at ${connections}`)
  const sample = await compareSides(seconds, ours, echoing(bench, connections))
  const row = rowOf({
    measure: `POST /payments, ${connections} connections`,
    ours: perSecond(sample.ours),
    reference: perSecond(sample.reference),
    unit: '/s',
    ...(connections === CONNECTIONS_MAX && { goal: AGAINST_EXPRESS }),
    note: `${latencyNote(sample.ours)}; bare Express + JWT + zod echo: ${latencyNote(sample.reference)}`,
  })
  return { row, ours: sample.ours }
}

const tail = async ({ harness, service }: Bench, ours: Sample, seconds: number): Promise<Row> => {
  harness.log('bare appends')
  const { side, close } = appendLoad(service.addresses.event_store, LATENCY_CONNECTIONS)
  try {
    await side(1)
    const appends = await side(seconds)
    return rowOf({
      measure: `POST /payments, p99 at ${LATENCY_CONNECTIONS}`,
      ours: percentile(ours, 0.99),
      reference: percentile(appends, 0.99),
      unit: 'ms',
      goal: TAIL,
      note: `against one append through the client, ${LATENCY_CONNECTIONS} in flight, on the same store: ${latencyNote(appends)}`,
    })
  } finally {
    await close()
  }
}

const againstInsert = async ({ harness, service }: Bench, ours: Sample, seconds: number): Promise<Row> => {
  await waitForFeeds(service)
  harness.log('single-row inserts')
  const { side, by } = await singleInserts(service.addresses.postgres, harness.file('insert.sql'))
  const inserts = await side(seconds)
  return rowOf({
    measure: `POST /payments, ${CONNECTIONS_MAX} connections, durable`,
    ours: perSecond(ours),
    reference: perSecond(inserts),
    unit: '/s',
    goal: AGAINST_INSERT,
    note: `against single-row inserts by ${by}, same Postgres server`,
  })
}

const run: Measure['run'] = async (harness, { seconds }) => {
  const service = await harness.service()
  const bench: Bench = { harness, service, bareExpress: await harness.bareExpress(), caller: await callerOf(service) }
  await warmUp(bench)
  const rows: Row[] = []
  for (const connections of CONNECTIONS) {
    const { row, ours } = await againstExpress(bench, connections, seconds)
    rows.push(row)
    if (connections === LATENCY_CONNECTIONS) rows.push(await tail(bench, ours, seconds))
    if (connections === CONNECTIONS_MAX) rows.push(await againstInsert(bench, ours, seconds))
  }
  const publishing = service.publishes ? 'publishing to Kafka' : 'no publisher, since no Kafka broker could be started'
  const [first, ...others] = rows
  const note = `one invoice for ${PARTS_PER_INVOICE} payments, own key and reference each; projections on, ${publishing}`
  return first ? [{ ...first, note: `${first.note}; ${note}` }, ...others] : []
}

export const payments: Measure = {
  name: 'payments',
  description:
    'POST /payments at 1, 16 and 64 connections, the whole service with embedded services in processes of their own, against ' +
    'bare Express that verifies a JWT and echoes a validated body; its p99 against that of one append; and the same ' +
    'against durable single-row inserts.',
  run,
}
