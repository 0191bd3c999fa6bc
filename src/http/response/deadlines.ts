import { REQUEST_DEADLINE_MS } from '../../commands/timeBudgets.ts'
import { Contended } from '../../commands/commandHandler.ts'
import { Unavailable, type World } from '../../ports.ts'
import { Problem } from './problemCatalogue.ts'
import type { AnyRoute, Reply } from '../route.ts'

/** Deadlines of requests, and the problems of failing dependencies, which must not appear as internal errors. */

export const deadlineOf = ({ deadlineMs = REQUEST_DEADLINE_MS }: Pick<AnyRoute, 'deadlineMs'>): number => deadlineMs

/**
 * Resolves within `leftMs`, whatever the dependencies do, or throws Problem. The work continues after that, and its
 * outcome can be found with the same key.
 */
export const withDeadline = async (
  world: World,
  { method }: Pick<AnyRoute, 'method'>,
  leftMs: number,
  work: () => Promise<Reply>,
): Promise<Reply> => {
  const answered = new AbortController()
  const { signal } = answered
  const code = method === 'GET' ? 'dependency_unavailable' : 'deadline_exceeded'
  const late = new Promise<never>((_, reject) => {
    const end = (): void => {
      // Created only when needed, since most requests are answered long before.
      if (!signal.aborted) reject(new Problem(code, { detail: 'There was no answer within the deadline.' }))
    }
    void world.sleep(Math.max(0, leftMs), signal).then(end)
  })
  return Promise.race([work(), late]).finally(() => answered.abort('answered'))
}

/** Throws the Problem of a failing dependency: which one depends on whether the request may have had an effect. */
export const unavailableAsProblem = async <T>(
  { method }: Pick<AnyRoute, 'method'>,
  work: () => Promise<T>,
): Promise<T> => {
  try {
    return await work()
  } catch (error) {
    if (error instanceof Contended) throw new Problem('concurrent_modification')
    if (!(error instanceof Unavailable)) throw error
    const nothingDone = method === 'GET' || error.effect === 'none'
    throw unanswered(error, nothingDone ? 'dependency_unavailable' : 'deadline_exceeded')
  }
}

/** The same for work without an effect for its caller, such as the record of a refusal: the Problem is always a 503. */
export const unavailableAs503 = async <T>(work: () => Promise<T>): Promise<T> => {
  try {
    return await work()
  } catch (error) {
    if (error instanceof Unavailable) throw unanswered(error, 'dependency_unavailable')
    throw error
  }
}

const unanswered = ({ dependency }: Unavailable, code: 'dependency_unavailable' | 'deadline_exceeded'): Problem =>
  new Problem(code, { detail: `The ${dependency} did not answer in time.` })
