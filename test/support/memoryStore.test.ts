import { eventStoreContract } from '../contracts/eventStore.ts'
import { createMemoryLog } from './memoryStore.ts'

// The store in memory, on which tests of commands and feeds rely, must satisfy the contract of event stores.
eventStoreContract('the log in memory', { restart: false }, () => {
  const log = createMemoryLog()
  return Promise.resolve({ open: () => log.open(), stop: () => Promise.resolve() })
})
