/**
 * Reads of one stream in a process of their own: `ledger` loads the invoice with nothing cached, `client` is the
 * client's own read of the same stream, and nothing more. `URL STREAM ledger|client COUNT`; prints a line of JSON with
 * COUNT reads, the first of which is that of a process that has just started.
 */

import { EventStoreDBClient } from '@eventstore/db-client'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { invoiceEntity } from '../../src/commands/entities.ts'
import { createLedger } from '../../src/commands/commandHandler.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import { partsOf } from '../../streams/aggregate.ts'
import { isId } from '../../streams/ids.ts'

export type Read = { readonly events: number; readonly ms: number; readonly cpuMs: number }

const [, , connectionString = '', stream = '', side = '', count = '1'] = process.argv

const byLedger = async (): Promise<() => Promise<number>> => {
  const { id } = partsOf(stream)
  if (!isId('inv', id)) throw new Error(`${stream} is no invoice.`)
  const store = openEventStore({ connectionString })
  await store.head()
  return async () => {
    const { aggregates } = createLedger(store, realWorld())
    return Number((await aggregates.load(invoiceEntity, id)).revision) + 1
  }
}

const byClient = async (): Promise<() => Promise<number>> => {
  const client = EventStoreDBClient.connectionString(connectionString)
  for await (const _ of client.readAll({ direction: 'backwards', maxCount: 1 })) continue
  return async () => {
    let events = 0
    for await (const _ of client.readStream(stream)) events += 1
    return events
  }
}

const measured = async (read: () => Promise<number>): Promise<Read> => {
  const cpuBefore = process.cpuUsage()
  const begunMs = performance.now()
  const events = await read()
  const ms = performance.now() - begunMs
  const { user, system } = process.cpuUsage(cpuBefore)
  return { events, ms, cpuMs: (user + system) / 1000 }
}

const read = await (side === 'ledger' ? byLedger() : byClient())
const reads: Read[] = []
while (reads.length < Number(count)) reads.push(await measured(read))
process.stdout.write(`${JSON.stringify(reads)}\n`)
process.exit(0)
