import { QuotaExceeded } from '../../commands/quotas/byteQuota.ts'
import type { ScopedKey } from '../../commands/idempotency/record.ts'
import { Unavailable } from '../../ports.ts'
import type { AnyRoute, Reply } from '../route.ts'
import type { AnyCall } from '../services.ts'
import { Problem } from '../problems/problemCatalogue.ts'

/**
 * When Postgres fails or a quota is used up, the caller is told that nothing was done, and may take another key. An
 * earlier request with the same key may have been executed, though: the log is asked before the refusal.
 */

/** Resolves to the reply of the route's handler, or of the first request with the key. */
export type AnswerByKey = (route: AnyRoute, call: AnyCall) => Promise<Reply>

const deniesEffect = (error: unknown): boolean =>
  (error instanceof Unavailable && error.dependency === 'database') ||
  error instanceof QuotaExceeded ||
  (error instanceof Problem && error.code === 'quota_exceeded')

const nameOf = ({ scope: { tenant, subject, client, operation }, key }: ScopedKey): string =>
  JSON.stringify([tenant, subject, client, operation, key])

export const createAnswerByKey = (): AnswerByKey => {
  /** The requests whose handlers run in this process, by their keys. */
  const running = new Map<string, Set<Promise<Reply>>>()

  const run = (name: string, handler: () => Promise<Reply>): Promise<Reply> => {
    const same = running.get(name) ?? new Set()
    running.set(name, same)
    const reply = handler().finally(() => {
      same.delete(reply)
      if (same.size === 0) running.delete(name)
    })
    same.add(reply)
    return reply
  }

  return async (route, call) => {
    const { handler, replay } = route
    const { idempotency, ledger } = call
    if (idempotency === undefined || replay === undefined) return handler(call as never)
    const name = nameOf(idempotency)
    try {
      return await run(name, () => handler(call as never))
    } catch (error) {
      if (!deniesEffect(error) || ledger.hasEffect()) throw error
      // A request that is still running may have used Postgres before it failed, and be about to append.
      await Promise.allSettled([...(running.get(name) ?? [])])
      const answer = await replay(call as never)
      if (answer === undefined) throw error
      return answer
    }
  }
}
