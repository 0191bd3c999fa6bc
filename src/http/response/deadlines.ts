import { SECOND_MS } from '../../lib/time.ts'
import { REQUEST_DEADLINE_MS } from '../../settings/timeBudgets.ts'
import { bytesText, QuotaExceeded } from '../../commands/quotas/byteQuota.ts'
import { Contended } from '../../commands/commandHandler.ts'
import { Unavailable, type World } from '../../ports.ts'
import { Problem } from '../problems/problemCatalogue.ts'
import { adviceOn } from '../problems/problemDocument.ts'
import type { AnyRoute, Reply } from '../route.ts'

export const deadlineOf = ({ deadlineMs = REQUEST_DEADLINE_MS }: Pick<AnyRoute, 'deadlineMs'>): number => deadlineMs

/** Resolves within `leftMs`, or throws Problem. The work continues, and its outcome is found with the same key. */
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
      if (!signal.aborted)
        reject(new Problem(code, { detail: `The request did not complete within its deadline. ${adviceOn(code)}` }))
    }
    void world.sleep(Math.max(0, leftMs), signal).then(end)
  })
  return Promise.race([work(), late]).finally(() => answered.abort('answered'))
}

/** Throws the Problem of a used quota or a failing dependency, by whether the request may have had an effect. */
export const unavailableAsProblem = async <T>(
  { method }: Pick<AnyRoute, 'method'>,
  work: () => Promise<T>,
): Promise<T> => {
  try {
    return await work()
  } catch (error) {
    if (error instanceof QuotaExceeded) throw overQuota(error)
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

const overQuota = ({ usedBytes, bytesPerDay, resetMs }: QuotaExceeded): Problem =>
  new Problem('quota_exceeded', {
    detail:
      `The quota "tenant_bytes" allows your tenant to store ${bytesText(bytesPerDay)} a day, and ` +
      `${bytesText(usedBytes)} have been stored since 00:00 UTC. Nothing of this request was stored. ` +
      'Repeat it after the next 00:00 UTC, or ask the operator of the service for a larger quota.',
    afterSeconds: Math.max(1, Math.ceil(resetMs / SECOND_MS)),
  })

const unanswered = ({ dependency }: Unavailable, code: 'dependency_unavailable' | 'deadline_exceeded'): Problem =>
  new Problem(code, { detail: `The ${dependency} did not respond in time. ${adviceOn(code)}` })
