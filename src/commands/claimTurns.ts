import type { Ledger } from './commandHandler.ts'

/**
 * Requests with the same idempotency key take turns, from the first use of Postgres to the answer of the append that binds the
 * key. A request that finds Postgres down looks in the log whether its key was used, and is a 503, which promises no effect,
 * where it was not. While another request is about to append under the key, that promise would be wrong.
 */

/** The name of the turn; `id` is the one that is derived from the key. */
export const claimTurnOf = (id: string): string => `claim of ${id}`

/**
 * Runs the work when the work of earlier requests with the key has settled. It should end with the append, because a longer one
 * makes all other requests with the key wait.
 */
export const inClaimTurn = <T>({ inTurn }: Pick<Ledger, 'inTurn'>, id: string, work: () => Promise<T>): Promise<T> =>
  inTurn(claimTurnOf(id), work)
