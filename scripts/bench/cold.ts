import { execFile } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { newEventOf } from '../../src/lib/storedEvents.ts'
import type { NewEvent } from '../../src/ports.ts'
import { idFromBytes } from '../../streams/ids.ts'
import { invoice, type InvoiceEvent } from '../../streams/invoice/index.ts'
import type { Read } from './coldRead.ts'
import { type Measure, medianOf, type Row, rowOf } from './measure.ts'

const EVENTS = 20_000
const PER_APPEND = 500
/** Processes of each side. */
const ROUNDS = 5
/** Reads of each process. */
const READS = 9
const GOAL_MS = 300
const READER = fileURLToPath(new URL('./coldRead.ts', import.meta.url))

const id = <P extends 'inv' | 'ord' | 'pay'>(prefix: P) => idFromBytes(prefix, randomBytes(17))

/** As the service would record it, by somebody who pays in 9,999 deferred parts. */
const recorded = (event: InvoiceEvent): NewEvent =>
  newEventOf(invoice.codec, {
    event,
    eventId: randomUUID(),
    metadata: {
      tenant: 'bench',
      subject: 'bench',
      client: 'bench',
      authority: 'payments:write',
      correlationId: randomUUID(),
      causationId: randomUUID(),
      at: new Date().toISOString(),
      schemaVersion: 1,
    },
  })

const history = (): NewEvent[] => {
  const subject = { order_id: id('ord'), currency: 'USD', amount_due: BigInt(EVENTS), due_date: '2030-01-01' }
  const events: InvoiceEvent[] = [
    { type: 'InvoiceRaised', data: { ...subject, metadata: {}, claim: null } },
    { type: 'InvoiceApproved', data: { ...subject, approved_by: 'bench' } },
  ]
  while (events.length < EVENTS) {
    const part = { payment_id: id('pay'), amount: 1n }
    events.push({ type: 'PaymentReserved', data: part }, { type: 'PaymentApplied', data: part })
  }
  return events.map(recorded)
}

const write = async (connectionString: string): Promise<string> => {
  const store = openEventStore({ connectionString, appendDeadlineMs: 30_000 })
  const stream = `${invoice.category}-${id('inv')}`
  const events = history()
  try {
    for (let at = 0; at < EVENTS; at += PER_APPEND) {
      const expected = at === 0 ? 'no_stream' : BigInt(at - 1)
      const appended = await store.append(stream, events.slice(at, at + PER_APPEND), expected)
      if (!appended.ok) throw new Error(`An append to ${stream} was refused.`)
    }
  } finally {
    await store.close()
  }
  return stream
}

/** The reads of each process of one side. */
type Side = readonly (readonly Read[])[]

/** One figure of each process: that of its first read, or the median of the later ones. */
const firstMs = (side: Side): number[] => side.map(([first]) => first?.ms ?? Number.NaN)
const laterOf = (side: Side, of: 'ms' | 'cpuMs'): number[] =>
  side.map(([, ...later]) => medianOf(later.map(read => read[of])))

const rowsOf = (ours: Side, reference: Side): Row[] => {
  const measure = `load an invoice of ${EVENTS} events, none of it cached`
  const against = "against the client's own read of the stream alone"
  return [
    rowOf({
      measure,
      ours: laterOf(ours, 'ms'),
      unit: 'ms',
      goal: { atMost: GOAL_MS },
      note: `fetched, decoded and folded in a running process; median of ${READS - 1} reads in each of ${ROUNDS} processes`,
    }),
    rowOf({
      measure: `${measure}, CPU`,
      ours: laterOf(ours, 'cpuMs'),
      reference: laterOf(reference, 'cpuMs'),
      unit: 'ms',
      goal: { atMost: 1 },
      note: against,
    }),
    rowOf({
      measure: `${measure}, first read of a process`,
      ours: firstMs(ours),
      reference: firstMs(reference),
      unit: 'ms',
      goal: { atMost: 1 },
      note: `${against}; most of both is the compilation of code that runs for the first time`,
    }),
  ]
}

const run: Measure['run'] = async harness => {
  const { eventStoreUrl } = await harness.stores()
  harness.log(`making an invoice of ${EVENTS} events`)
  const stream = await write(eventStoreUrl)
  const readBy = async (side: 'ledger' | 'client'): Promise<Read[]> => {
    const { stdout } = await promisify(execFile)(process.execPath, [READER, eventStoreUrl, stream, side, String(READS)])
    const reads = JSON.parse(stdout) as Read[]
    for (const { events } of reads)
      if (events !== EVENTS) throw new Error(`The ${side} read ${events} of ${EVENTS} events.`)
    return reads
  }
  const [ours, reference]: [Read[][], Read[][]] = [[], []]
  for (let round = 1; round <= ROUNDS; round += 1) {
    harness.log(`cold reads, round ${round} of ${ROUNDS}`)
    reference.push(await readBy('client'))
    ours.push(await readBy('ledger'))
  }
  return { rows: rowsOf(ours, reference) }
}

export const cold: Measure = {
  name: 'cold',
  description:
    `An invoice of ${EVENTS} events loaded with nothing cached, against the read of the same stream by the client of ` +
    'EventStoreDB alone.',
  run,
}
