import { eventStoreContract } from '../contracts/eventStore.ts'
import { createMemoryLog } from './memoryStore.ts'

// What the tests of commands and feeds stand on must itself do what every event store does.
eventStoreContract('the log in memory', { restart: false }, () => {
  const log = createMemoryLog()
  return Promise.resolve({ open: () => log.open(), stop: () => Promise.resolve() })
})
