import { AsyncLocalStorage } from 'node:async_hooks'
import type { Account } from './account.ts'

/**
 * The account that the present work is for. It follows the work through every call, so the connections of a pool
 * are shared out by it and no query can leave it out. The service's own work has none.
 */

const current = new AsyncLocalStorage<Account | undefined>()

export const workFor = <T>(account: Account, work: () => T): T => current.run(account, work)

/**
 * For work that serves all tenants but begins in a request of one, such as a shared poll: it must not wait in the queue
 * of that tenant.
 */
export const workForAll = <T>(work: () => T): T => current.run(undefined, work)

export const currentAccount = (): Account | undefined => current.getStore()
