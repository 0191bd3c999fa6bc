import { randomUUID } from 'node:crypto'
import { EventStoreDBClient, jsonEvent } from '@eventstore/db-client'
import { appendedEvent, appendLoad } from './appendLoad.ts'
import type { Harness } from './harness.ts'
import { compareSides, inFlight, latencyNote, type Measure, perSecond, type Row, rowOf, type Side } from './measure.ts'
import { singleInserts } from './pgbench.ts'

const LANES = 64
const WARM_SECONDS = 2
const GOAL = { atLeast: 0.5 }
const CPU_ROUNDS = 5
const CPU_SECONDS = 2
const CPU_GOAL = { atMost: 0.5 }

const cpuUsPerAppend = async (side: Side): Promise<number> => {
  const before = process.cpuUsage()
  const { count } = await side(CPU_SECONDS)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / count
}

/** The CPU time of an append in the process that appends, against that of the client of EventStoreDB alone. */
const appendCost = async (harness: Harness, eventStoreUrl: string): Promise<Row> => {
  const { side, check, close } = appendLoad(eventStoreUrl, LANES)
  const client = EventStoreDBClient.connectionString(eventStoreUrl)
  const byClient = async (): Promise<void> => {
    const options = { expectedRevision: 'no_stream' } as const
    const appended = await client.appendToStream(`bench-${randomUUID()}`, [jsonEvent(appendedEvent())], options)
    if (!appended.success) throw new Error('A stream with a random name was there already.')
  }
  const clients: Side = seconds => inFlight(LANES, seconds, byClient)
  const [ours, reference]: [number[], number[]] = [[], []]
  try {
    for (const warm of [side, clients]) await warm(CPU_SECONDS)
    for (let round = 1; round <= CPU_ROUNDS; round += 1) {
      harness.log(`CPU of appends, round ${round} of ${CPU_ROUNDS}`)
      reference.push(await cpuUsPerAppend(clients))
      ours.push(await cpuUsPerAppend(side))
    }
    await check()
  } finally {
    await client.dispose()
    await close()
  }
  return rowOf({
    measure: `append, ${LANES} in flight, CPU of the process that appends`,
    ours,
    reference,
    unit: 'µs',
    goal: CPU_GOAL,
    note: "against the client's own appends of the same events to the same store",
  })
}

const run: Measure['run'] = async (harness, size) => {
  const { databaseUrl, eventStoreUrl } = await harness.stores()
  const inserts = await singleInserts(databaseUrl, harness.file('insert.sql'))
  const { side, check, close } = appendLoad(eventStoreUrl, LANES)
  try {
    await side(WARM_SECONDS)
    harness.log(`appends, ${LANES} in flight`)
    const sample = await compareSides(size, side, inserts.side)
    await check()
    const row = rowOf({
      measure: `append, ${LANES} in flight`,
      ours: sample.ours.map(perSecond),
      reference: sample.reference.map(perSecond),
      unit: '/s',
      goal: GOAL,
      note: `${latencyNote(sample.ours)}; against single-row inserts by ${inserts.by}, same Postgres server`,
    })
    const costs = await appendCost(harness, eventStoreUrl)
    return { rows: [row, costs] }
  } finally {
    await close()
  }
}

export const appends: Measure = {
  name: 'append',
  description:
    'Single events appended to new streams of the embedded event store through its adapter, 64 in flight, against ' +
    'single-row inserts by 64 clients of pgbench into the same Postgres server; and their CPU time in the process that ' +
    "appends, against the client's own appends.",
  run,
}
