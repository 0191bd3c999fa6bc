import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool, PoolClient } from 'pg'
import { currentAccount } from '../../fairness/currentAccount.ts'
import { type EndTurn, HELD_UNTIL_DONE, Turns } from '../../fairness/turns.ts'
import { Unavailable } from '../../ports.ts'

export const CONNECT_TIMEOUT_MS = 2_000

/** A connection, which must be released; `isBroken` closes it. */
export type Connection = { readonly client: PoolClient; readonly release: (isBroken?: boolean) => void }
export type Connect = () => Promise<Connection>

/** Tenants take turns for connections; the service's own work does not queue with them. Throws Unavailable without effect. */
export const connectInTurn = (pool: Pool, timeShareWhenContended: number): Connect => {
  const clock = { monotonicMs: () => performance.now(), sleep: (timeMs: number) => sleep(timeMs) }
  const limits = { ...HELD_UNTIL_DONE, timeShareWhenContended, waitMaxMs: CONNECT_TIMEOUT_MS }
  const turns = new Turns({ ...limits, turns: () => pool.options.max }, clock)
  return async () => {
    const account = currentAccount()
    let end: EndTurn | undefined
    try {
      end = account && (turns.tryEnter(account) ?? (await turns.enter(account)))
      const client = await pool.connect()
      const release = (isBroken?: boolean): void => {
        client.release(isBroken)
        end?.()
      }
      return { client, release }
    } catch (error) {
      end?.()
      throw new Unavailable('database', { effect: 'none', cause: error })
    }
  }
}
