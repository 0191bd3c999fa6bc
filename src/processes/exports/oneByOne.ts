import { type Logger, Unavailable, type World } from '../../ports.ts'

const RETRY_MS = 60_000

export type OneByOne = (ids: readonly string[], work: (id: string) => Promise<void>) => Promise<void>

/** An export that fails is left out for a minute, as its stream alone may be unreadable. Throws Unavailable at the first. */
export const createOneByOne = (world: Pick<World, 'monotonicMs'>, log: Pick<Logger, 'error'>): OneByOne => {
  const pausedUntilMs = new Map<string, number>()
  return async (ids, work) => {
    for (const [id, untilMs] of pausedUntilMs) if (untilMs <= world.monotonicMs()) pausedUntilMs.delete(id)
    for (const id of ids) {
      if (pausedUntilMs.has(id)) continue
      try {
        await work(id)
      } catch (error) {
        pausedUntilMs.set(id, world.monotonicMs() + RETRY_MS)
        if (error instanceof Unavailable) throw error
        log.error({ operation: id, error }, 'an export could not be expired')
      }
    }
  }
}
