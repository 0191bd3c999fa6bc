import { randomUUID } from 'node:crypto'
import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { orderEntity } from '../../src/commands/entities.ts'
import { randomId } from '../../src/lib/identifiers.ts'
import { newEventOf } from '../../src/lib/storedEvents.ts'
import { realWorld } from '../../src/lib/clockAndRandomness.ts'
import type { TestService } from './service.ts'

/**
 * Appends an order with a long text as the token of its customer reference, which no request can cause: its fact may exceed what
 * the broker takes. Resolves to the id of the order.
 */
export const createOrderWithLargeFact = async (
  { addresses }: Pick<TestService, 'addresses'>,
  { tenant, customer_reference }: { readonly tenant: string; readonly customer_reference: string },
): Promise<string> => {
  const store = openEventStore({ connectionString: addresses.event_store })
  const id = randomId('ord', realWorld())
  const lines = [{ sku: 'tea', description: null, quantity: 1, unit_amount: 900n }]
  const terms = { customer_reference, description: null, currency: 'USD', lines, total_amount: 900n }
  const event = { type: 'OrderCreated' as const, data: { ...terms, metadata: {}, claim: null } }
  const commandId = randomUUID()
  const metadata = {
    ...{ tenant, subject: 'tester', client: 'tester', authority: 'orders:write', correlationId: randomUUID() },
    ...{ causationId: commandId, at: new Date().toISOString(), schemaVersion: 1 },
  }
  try {
    const stored = newEventOf(orderEntity.aggregate.codec, { event, eventId: randomUUID(), metadata })
    await store.append(`order-${id}`, [stored], 'no_stream')
  } finally {
    await store.close()
  }
  return id
}
