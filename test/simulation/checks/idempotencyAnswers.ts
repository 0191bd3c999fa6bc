import type { SimulatedLog } from '../eventStore.ts'
import type { Attempt } from '../history.ts'
import { timeOf } from '../machine.ts'
import { type Answered, correlationIdOf, isAnswered, textOf } from './answered.ts'
import { violation, type Violation } from './violation.ts'

/** The answers to requests with the same idempotency key, compared with each other. */

const scopeOfKey = ({ sent: { caller, operation, headers = {}, id = '' } }: Attempt): string | undefined => {
  const key = headers['idempotency-key']
  return key === undefined ? undefined : [caller.tenant, caller.subject, operation, key, id].join(' ')
}

const bodyOf = ({ sent: { body } }: Attempt): string => JSON.stringify(body ?? null)

const isSuccess = ({ answer }: Answered): boolean => answer.status === 201 || answer.status === 200

const contradicts = (one: Answered, first: Answered): Violation[] => {
  const isSame = bodyOf(one) === bodyOf(first)
  if (isSuccess(one) && (!isSame || one.answer.text !== first.answer.text)) {
    const detail = `${textOf(first)} and ${textOf(one)}: ${first.answer.text} ${one.answer.text}`
    return [violation('one key, one result', detail)]
  }
  const isLater = one.beganMs > first.endedMs
  const isRefusal = one.answer.status === 409 && one.answer.code !== 'idempotency_in_progress'
  if (isLater && isSame && isRefusal && one.answer.code !== 'concurrent_modification')
    return [violation('a definitive answer never changes', `${textOf(first)}, then ${textOf(one)}`)]
  return []
}

/** After the first success with a key the same request gets the same bytes, and a different request is refused. */
export const oneAnswerPerKey = (answered: readonly Answered[]): Violation[] => {
  const byKey = Map.groupBy(answered.filter(scopeOfKey), scopeOfKey)
  return [...byKey.values()].flatMap(attempts => {
    const first = attempts.filter(isSuccess).toSorted((a, b) => a.endedMs - b.endedMs)[0]
    return first === undefined ? [] : attempts.flatMap(one => contradicts(one, first))
  })
}

/** The refusals by an order that are recorded when the key of the request is bound. */
const RECORDED_CODES: ReadonlySet<string> = new Set(['order_has_invoices', 'order_state_conflict'])

/** A request that is refused after its key was bound stays refused, even if the order changes later. */
export const refusalsUnderBoundKeysStay = (attempts: readonly Attempt[], { events }: SimulatedLog): Violation[] => {
  const byCorrelationId = new Map(attempts.map(one => [one.sent.correlationId, one]))
  const byKey = Map.groupBy(attempts.filter(isAnswered), scopeOfKey)
  return events
    .filter(({ type }) => type === 'KeyBound')
    .flatMap(bound => {
      const binding = byCorrelationId.get(String(correlationIdOf(bound)))
      const same = (binding && byKey.get(scopeOfKey(binding)))?.filter(one => bodyOf(one) === bodyOf(binding)) ?? []
      const refused = same.find(
        ({ answer, beganMs }) =>
          answer.code !== undefined && RECORDED_CODES.has(answer.code) && timeOf(beganMs) > bound.storedAt,
      )
      const accepted = refused && same.find(({ answer, beganMs }) => answer.status < 300 && beganMs > refused.endedMs)
      return accepted
        ? [violation('a definitive answer never changes', `${textOf(refused)}, then ${textOf(accepted)}`)]
        : []
    })
}
