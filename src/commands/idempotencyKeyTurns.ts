import type { Ledger } from './commandHandler.ts'

/**
 * Turns of the requests with the same idempotency key in this process: one at a time runs from the first use of
 * Postgres to the answer of the append that binds the key. Without Postgres a request reads in the log whether its key
 * was used. If it was not, the request is answered with 503, which promises no effect; the promise would be wrong while
 * another request is about to append under the key.
 */

/** The name of the queue of requests; `id` is the id that is derived from the key. */
export const keyTurnOf = (id: string): string => `requests with the key of ${id}`

/**
 * Runs the work when that of earlier requests with the key has ended. The work should end with the append, because
 * other requests with the key wait for it.
 */
export const inKeyTurn = <T>({ inTurn }: Pick<Ledger, 'inTurn'>, id: string, work: () => Promise<T>): Promise<T> =>
  inTurn(keyTurnOf(id), work)
