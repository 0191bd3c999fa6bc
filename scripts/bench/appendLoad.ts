import { randomUUID } from 'node:crypto'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { inFlight, type Side } from './measure.ts'

/** The size of the first event of a payment, including its idempotency record and metadata. */
const DATA = { invoice_id: 'inv_', amount: 100, currency: 'USD', padding: 'x'.repeat(380) }
const METADATA = { tenant: 'bench', subject: 'bench', padding: 'x'.repeat(220) }

export type AppendLoad = { readonly side: Side; readonly close: () => Promise<void> }

/** Appends of single events to new streams through the service's own client, with `lanes` appends in flight. */
export const appendLoad = (eventStoreUrl: string, lanes: number): AppendLoad => {
  const store = openEventStore({ connectionString: eventStoreUrl })
  const appendOne = async (): Promise<void> => {
    const event = { id: randomUUID(), type: 'Appended', data: DATA, metadata: METADATA }
    const appended = await store.append(`bench-${randomUUID()}`, [event], 'no_stream')
    if (!appended.ok) throw new Error('A stream with a random name was there already.')
  }
  return { side: seconds => inFlight(lanes, seconds, appendOne), close: () => store.close() }
}
