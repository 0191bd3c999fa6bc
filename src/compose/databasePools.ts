import { type DatabaseOptions, openDatabase } from '../adapters/postgres/database.ts'
import type { CleanupStack } from '../lib/cleanupStack.ts'
import type { Database } from '../ports.ts'

/**
 * Lists, downloads, other requests, feeds and event streams have pools of their own, so none exhausts another. API
 * processes that share a port share the connections too: a server has few.
 */

export const REQUESTS_POOL_MAX = 10
export const LISTS_POOL_MAX = 4
export const FEEDS_POOL_MAX = 8
/** Event streams share all but one to read history; one is for the poll of the tail (http/reading/tail.ts). */
export const EVENT_STREAMS_POOL_MAX = 5
/** Downloads of exports and counts of facts: short statements, many in a row, which must not delay look-ups. */
export const BULK_POOL_MAX = 3

/** The connections of all API processes together, and the least of one. */
const ALL_REQUESTS_MAX = 32
const ALL_LISTS_MAX = 12
const ALL_EVENT_STREAMS_MAX = 20
const REQUESTS_POOL_MIN = 3
/** One tenant may hold half, so another one is served too. */
const LISTS_POOL_MIN = 2
const EVENT_STREAMS_POOL_MIN = 2
const BULK_POOL_MIN = 2

/** The sizes in a process that is one of `apiProcesses`. */
export const poolSizesOf = (apiProcesses: number) => {
  const share = (all: number): number => Math.floor(all / Math.max(1, apiProcesses))
  return {
    requests: Math.min(REQUESTS_POOL_MAX, Math.max(REQUESTS_POOL_MIN, share(ALL_REQUESTS_MAX))),
    lists: Math.min(LISTS_POOL_MAX, Math.max(LISTS_POOL_MIN, share(ALL_LISTS_MAX))),
    eventStreams: Math.min(EVENT_STREAMS_POOL_MAX, Math.max(EVENT_STREAMS_POOL_MIN, share(ALL_EVENT_STREAMS_MAX))),
    feeds: FEEDS_POOL_MAX,
    bulk: apiProcesses > 1 ? BULK_POOL_MIN : BULK_POOL_MAX,
  }
}

/** A page examines a bounded number of rows (projections/listQueries.ts). */
const LISTS_STATEMENT_TIMEOUT_MS = 1_000

/** A page is read by the index of its order: a plan that sorts would read all rows of a tenant first. */
const LISTS_SETTINGS = {
  enable_sort: 'off',
  enable_incremental_sort: 'off',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
}

export const openLists = (
  options: Pick<DatabaseOptions, 'connectionString' | 'poolMax' | 'applicationName'>,
): Database =>
  openDatabase({
    ...options,
    statementTimeoutMs: LISTS_STATEMENT_TIMEOUT_MS,
    settings: LISTS_SETTINGS,
    statements: 'heavy',
  })

export const openPools = (connectionString: string, sizes: ReturnType<typeof poolSizesOf>, cleanup: CleanupStack) => {
  const open = (applicationName: string, poolMax: number, statements: 'light' | 'heavy' = 'light'): Database => {
    const database = openDatabase({ connectionString, poolMax, applicationName, statements })
    cleanup.defer(() => database.close())
    return database
  }
  const lists = openLists({ connectionString, poolMax: sizes.lists, applicationName: 'ledger-lists' })
  cleanup.defer(() => lists.close())
  return {
    lists,
    database: open('ledger', sizes.requests),
    feedsDatabase: open('ledger-feeds', sizes.feeds),
    streams: open('ledger-streams', sizes.eventStreams),
    bulk: open('ledger-bulk', sizes.bulk, 'heavy'),
  }
}
