import { randomUUID } from 'node:crypto'
import { EventStoreDBClient, jsonEvent, NO_STREAM } from '@eventstore/db-client'
import { inFlight, type Side } from './measure.ts'

/** As large as the first event of a payment, claim and metadata included. */
const DATA = { invoice_id: 'inv_', amount: 100, currency: 'USD', padding: 'x'.repeat(380) }
const METADATA = { tenant: 'bench', subject: 'bench', padding: 'x'.repeat(220) }

export type Appending = { readonly side: Side; readonly close: () => Promise<void> }

/** Single events to new streams through the official client, `lanes` under way at any time. */
export const appending = (eventStoreUrl: string, lanes: number): Appending => {
  const client = EventStoreDBClient.connectionString(eventStoreUrl)
  const appendOne = async (): Promise<void> => {
    const event = jsonEvent({ id: randomUUID(), type: 'Appended', data: DATA, metadata: METADATA })
    await client.appendToStream(`bench-${randomUUID()}`, event, { expectedRevision: NO_STREAM })
  }
  return { side: seconds => inFlight(lanes, seconds, appendOne), close: () => client.dispose() }
}
