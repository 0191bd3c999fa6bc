import { randomUUID } from 'node:crypto'
import { EventStoreDBClient, jsonEvent } from '@eventstore/db-client'
import { appendLoad, appendedEvent } from './appendLoad.ts'
import type { Harness } from './harness.ts'
import { inFlight, type Row, rowOf, type Side } from './measure.ts'

/** The CPU time of an append in the process that appends, against that of the client of EventStoreDB alone. */

const ROUNDS = 5
const SECONDS = 2
const GOAL = { atMost: 0.5 }

/** Microseconds of CPU for each append of one round. */
const cpuUsPerAppend = async (side: Side): Promise<number> => {
  const before = process.cpuUsage()
  const { count } = await side(SECONDS)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / count
}

export const appendCost = async (harness: Harness, eventStoreUrl: string, lanes: number): Promise<Row> => {
  const { side, check, close } = appendLoad(eventStoreUrl, lanes)
  const client = EventStoreDBClient.connectionString(eventStoreUrl)
  const byClient = async (): Promise<void> => {
    const options = { expectedRevision: 'no_stream' } as const
    const appended = await client.appendToStream(`bench-${randomUUID()}`, [jsonEvent(appendedEvent())], options)
    if (!appended.success) throw new Error('A stream with a random name was there already.')
  }
  const clients: Side = seconds => inFlight(lanes, seconds, byClient)
  const [ours, reference]: [number[], number[]] = [[], []]
  try {
    for (const warm of [side, clients]) await warm(SECONDS)
    for (let round = 1; round <= ROUNDS; round += 1) {
      harness.log(`CPU of appends, round ${round} of ${ROUNDS}`)
      reference.push(await cpuUsPerAppend(clients))
      ours.push(await cpuUsPerAppend(side))
    }
    await check()
  } finally {
    await client.dispose()
    await close()
  }
  return rowOf({
    measure: `append, ${lanes} in flight, CPU of the process that appends`,
    ours,
    reference,
    unit: 'µs',
    goal: GOAL,
    note: "against the client's own appends of the same events to the same store",
  })
}
