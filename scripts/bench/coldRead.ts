/**
 * One cold read in a process of its own, as after a start: `ledger` loads the invoice that begins to be paid, `client` is the
 * client's own read of the same stream, and nothing more. `URL STREAM ledger|client`; prints a line of JSON.
 */

import { EventStoreDBClient } from '@eventstore/db-client'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { invoiceEntity } from '../../src/commands/entities.ts'
import { createLedger } from '../../src/commands/commandHandler.ts'
import { realWorld } from '../../src/clockAndRandomness.ts'
import { partsOf } from '../../streams/aggregate.ts'
import { isId } from '../../streams/ids.ts'

const [, , connectionString = '', stream = '', side = ''] = process.argv

const byLedger = async (): Promise<() => Promise<number>> => {
  const { id } = partsOf(stream)
  if (!isId('inv', id)) throw new Error(`${stream} is no invoice.`)
  const store = openEventStore({ connectionString })
  await store.head()
  const { aggregates } = createLedger(store, realWorld())
  return async () => Number((await aggregates.load(invoiceEntity, id)).revision) + 1
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

const read = await (side === 'ledger' ? byLedger() : byClient())
const cpuBefore = process.cpuUsage()
const begunMs = performance.now()
const events = await read()
const ms = performance.now() - begunMs
const { user, system } = process.cpuUsage(cpuBefore)
process.stdout.write(`${JSON.stringify({ events, ms, cpuMs: (user + system) / 1000 })}\n`)
process.exit(0)
