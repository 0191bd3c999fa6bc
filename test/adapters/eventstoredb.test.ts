import { openEventStore } from '../../src/adapters/eventstoredb/eventStore.ts'
import { type EventStoreUnderTest, eventStoreContract } from '../contracts/eventStore.ts'
import { startTestNode } from '../embedded/eventStoreNode.ts'

const embedded = async (): Promise<EventStoreUnderTest> => {
  const { address, restart, kill, stop } = await startTestNode()
  return { open: () => openEventStore({ connectionString: address }), restart, kill, stop }
}

eventStoreContract('the embedded node', { restart: true }, embedded)

const outside = process.env['EVENTSTORE_URL']
if (outside !== undefined)
  eventStoreContract('EVENTSTORE_URL', { restart: false }, () =>
    Promise.resolve({ open: () => openEventStore({ connectionString: outside }), stop: () => Promise.resolve() }),
  )
