import { openDatabase } from '../adapters/postgres/database.ts'
import type { CleanupStack } from '../cleanupStack.ts'
import type { Database } from '../ports.ts'

/**
 * The connection pools of the service and their sizes. Requests, feeds and event streams have pools of their own, so that none
 * can exhaust those of the others.
 */

export const REQUESTS_POOL_MAX = 10
export const FEEDS_POOL_MAX = 8
/** Event streams share all but one to read history; one is for the poll of the tail (http/resources/events/tail.ts). */
export const EVENT_STREAMS_POOL_MAX = 5

export const openPools = (connectionString: string, cleanup: CleanupStack) => {
  const open = (applicationName: string, poolMax: number): Database => {
    const database = openDatabase({ connectionString, poolMax, applicationName })
    cleanup.defer(() => database.close())
    return database
  }
  return {
    database: open('ledger', REQUESTS_POOL_MAX),
    feedsDatabase: open('ledger-feeds', FEEDS_POOL_MAX),
    streams: open('ledger-streams', EVENT_STREAMS_POOL_MAX),
  }
}
