import { appending } from './appending.ts'
import { type Caller, callerOf, PARTS_PER_INVOICE, payingRequests, paymentRequest, settled } from './caller.ts'
import { load } from './load.ts'
import {
  inTurns,
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
import type { ServiceOnStage, Stage } from './stage.ts'

const CREATED = 201
const CONNECTIONS = [1, 16, 64] as const
const MOST = 64
/** Where latency is compared. */
const MIDDLE = 16
/** More than this many payments a second use the invoices up, and the run ends a little early. */
const PER_SECOND_MAX: Readonly<Record<number, number>> = { 1: 600, 16: 2_000, 64: 2_400 }
const WARM_SECONDS = 2

const AGAINST_EXPRESS = { atLeast: 0.35 }
const AGAINST_INSERT = { atLeast: 0.08 }
const TAIL = { atMost: 6 }

type Bench = { readonly stage: Stage; readonly service: ServiceOnStage; readonly bare: string; readonly caller: Caller }

const paying = async ({ stage, service, caller }: Bench, connections: number, seconds: number): Promise<Side> => {
  const payments = (PER_SECOND_MAX[connections] ?? 0) * seconds
  const count = Math.ceil(payments / PARTS_PER_INVOICE) + connections
  stage.say(`preparing ${count} approved invoices`)
  const invoices = await caller.invoices(count)
  await settled(service)
  const next = payingRequests(caller.headers, invoices, connections)
  return async each => load({ base: service.addresses.api, connections, seconds: each, next, status: CREATED })
}

const echoing = ({ bare, caller }: Bench, connections: number): Side => {
  const invoice = `inv_${'0'.repeat(26)}`
  const next = (): string => paymentRequest(caller.headers, invoice)
  return seconds => load({ base: bare, connections, seconds, next, status: CREATED })
}

const warmUp = async (bench: Bench): Promise<void> => {
  bench.stage.say('warming up')
  await echoing(bench, MOST)(WARM_SECONDS)
  await (await paying(bench, MOST, WARM_SECONDS))(WARM_SECONDS)
}

const againstExpress = async (
  bench: Bench,
  connections: number,
  seconds: number,
): Promise<{ row: Row; ours: Sample }> => {
  const ours = await paying(bench, connections, seconds)
  bench.stage.say(`POST /payments at ${connections}`)
  const sample = await inTurns(seconds, ours, echoing(bench, connections))
  const row = rowOf({
    measure: `POST /payments, ${connections} connections`,
    ours: perSecond(sample.ours),
    reference: perSecond(sample.reference),
    unit: '/s',
    ...(connections === MOST && { goal: AGAINST_EXPRESS }),
    note: `${latencyNote(sample.ours)}; bare Express + JWT + zod echo: ${latencyNote(sample.reference)}`,
  })
  return { row, ours: sample.ours }
}

const tail = async ({ stage, service }: Bench, ours: Sample, seconds: number): Promise<Row> => {
  stage.say('bare appends')
  const { side, close } = appending(service.addresses.event_store, MIDDLE)
  try {
    await side(1)
    const appends = await side(seconds)
    return rowOf({
      measure: `POST /payments, p99 at ${MIDDLE}`,
      ours: percentile(ours, 0.99),
      reference: percentile(appends, 0.99),
      unit: 'ms',
      goal: TAIL,
      note: `against one append through the client, ${MIDDLE} in flight, on the same store: ${latencyNote(appends)}`,
    })
  } finally {
    await close()
  }
}

const againstInsert = async ({ stage, service }: Bench, ours: Sample, seconds: number): Promise<Row> => {
  await settled(service)
  stage.say('single-row inserts')
  const { side, by } = await singleInserts(service.addresses.postgres, stage.file('insert.sql'))
  const inserts = await side(seconds)
  return rowOf({
    measure: `POST /payments, ${MOST} connections, durable`,
    ours: perSecond(ours),
    reference: perSecond(inserts),
    unit: '/s',
    goal: AGAINST_INSERT,
    note: `against single-row inserts by ${by}, same Postgres server`,
  })
}

const run: Measure['run'] = async (stage, { seconds }) => {
  const service = await stage.service()
  const bench: Bench = { stage, service, bare: await stage.bare(), caller: await callerOf(service) }
  await warmUp(bench)
  const rows: Row[] = []
  for (const connections of CONNECTIONS) {
    const { row, ours } = await againstExpress(bench, connections, seconds)
    rows.push(row)
    if (connections === MIDDLE) rows.push(await tail(bench, ours, seconds))
    if (connections === MOST) rows.push(await againstInsert(bench, ours, seconds))
  }
  const publishing = service.publishes ? 'publishing to Kafka' : 'no publisher, since no Kafka broker could be started'
  const [first, ...others] = rows
  const note = `one invoice for ${PARTS_PER_INVOICE} payments, own key and reference each; projections on, ${publishing}`
  return first ? [{ ...first, note: `${first.note}; ${note}` }, ...others] : []
}

export const payments: Measure = {
  name: 'payments',
  what:
    'POST /payments at 1, 16 and 64 connections, the whole service with embedded parts in processes of their own, against ' +
    'bare Express that verifies a JWT and echoes a validated body; its p99 against that of one append; and the same ' +
    'against durable single-row inserts.',
  run,
}
