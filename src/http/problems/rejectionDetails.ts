import type { Rejection } from '../../../streams/decider.ts'
import type { KeyConflict } from '../../commands/idempotency/conflicts.ts'
import { isErrorCode, Problem } from './problemCatalogue.ts'

/**
 * The details of the problems of refused commands: rejections, and conflicts of idempotency keys. Titles:
 * problemCatalogue.ts.
 */

type Recorded = { readonly firstCorrelationId?: string; readonly replayed?: true }

export const problemOfRejection = (rejection: Rejection, { firstCorrelationId, replayed }: Recorded = {}): Problem => {
  if (!isErrorCode(rejection.rejected)) throw new Error(`No problem is called ${rejection.rejected}.`)
  return new Problem(rejection.rejected, {
    ...detailOf(rejection),
    ...(firstCorrelationId === undefined ? {} : { correlationId: firstCorrelationId }),
    ...(replayed ? { headers: { 'Idempotent-Replayed': 'true' } } : {}),
  })
}

const detailOf = ({ rejected, params = {} }: Rejection): { detail?: string } => {
  if (rejected === 'too_many_changes') return { detail: tooManyChanges(params['events']) }
  const named = Object.entries(params).map(([name, value]) => `${name}: ${value}`)
  return named.length > 0 ? { detail: `See ${named.join(', ')}.` } : {}
}

const tooManyChanges = (events: string | bigint | undefined): string =>
  `Its history has ${events} events or more, and this request would add to them. ` +
  'What ends it is still possible: to cancel, delete or revoke it, or to pay or refund all that is left. ' +
  'Create another one for further changes.'

/** The problem of a key that was used before. `path`: the path of the resources that the key created. */
export const problemOfKeyConflict = (conflict: KeyConflict, path: string): Problem =>
  conflict.kind === 'key_reused'
    ? keyReused(conflict.pointers)
    : new Problem('idempotency_key_expired', { headers: { Location: `${path}/${conflict.id}` } })

const keyReused = (pointers: readonly string[]): Problem =>
  new Problem('idempotency_key_reused', {
    detail: 'The first request with this key differs at the members listed.',
    errors: pointers.map(pointer => ({ pointer, code: 'differs', detail: 'Differs from the first request.' })),
  })
