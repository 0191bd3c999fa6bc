import type { Texts } from '../../../src/personalTexts/personalTexts.ts'
import { partsOf } from '../../../streams/aggregate.ts'
import type { SimulatedLog } from '../eventStore.ts'
import type { Attempt } from '../history.ts'
import { type Answered, correlationIdOf, isAnswered, textOf } from './answered.ts'
import { oneAnswerPerKey, refusalsUnderBoundKeysStay } from './idempotencyAnswers.ts'
import {
  listItemsAreFolds,
  listsAreComplete,
  readsAreMonotone,
  representationsAreFolds,
  staleMeansNewer,
} from './representations.ts'
import { violation, type Violation } from './violation.ts'

/** The answers that clients got, compared with the log and with each other. */

const noInternalErrors = (answered: readonly Answered[]): Violation[] =>
  answered
    .filter(({ answer }) => answer.status === 500)
    .map(one => violation('no answer is a 500', `${textOf(one)} ${String((one.answer.fault as Error)?.stack)}`))

const AUDIT_CATEGORIES: ReadonlySet<string> = new Set(['access'])
/** Events that a refused request may leave: the binding of its key, and the record of its refusal. */
const EVENTS_OF_RECORDED_REFUSALS: ReadonlySet<string> = new Set([
  'PaymentInitiated',
  'PaymentFailed',
  'PaymentRefused',
  'PaymentReleased',
  'ReferenceRefused',
  'ReferenceTaken',
  'ReferenceReleased',
  'RefundInitiated',
  'RefundRefused',
  'KeyBound',
  'OrderInvoiceRefused',
])

/** A 404 may leave a bound key: the resource was revoked or deleted in between, which is final, so the answer stays. */
const mayLeave = (status: number, type: string): boolean =>
  (status === 409 && EVENTS_OF_RECORDED_REFUSALS.has(type)) || (status === 404 && type === 'KeyBound')

/** A request that is answered with an error has no effect. Only after a 500 or 504 the effect is unknown. */
const refusedWithoutEffect = (answered: readonly Answered[], log: SimulatedLog): Violation[] => {
  const effects = Map.groupBy(
    log.events.filter(({ stream }) => !AUDIT_CATEGORIES.has(partsOf(stream).category)),
    correlationIdOf,
  )
  return answered.flatMap(one => {
    const { status } = one.answer
    if (status < 400 || status === 500 || status === 504) return []
    const left = (effects.get(one.sent.correlationId) ?? []).filter(({ type }) => !mayLeave(status, type))
    if (left.length === 0) return []
    return [violation('a refused request has no effect', `${textOf(one)} left ${left.map(({ type }) => type).join()}`)]
  })
}

/** `refused`: the ids of which a table has refused a row. */
export const checkAnswers = (
  attempts: readonly Attempt[],
  log: SimulatedLog,
  refused: ReadonlySet<string>,
  texts: Texts,
): Violation[] => {
  const answered = attempts.filter(isAnswered)
  return [
    ...noInternalErrors(answered),
    ...refusedWithoutEffect(answered, log),
    ...oneAnswerPerKey(answered),
    ...refusalsUnderBoundKeysStay(attempts, log),
    ...representationsAreFolds(answered, log, texts),
    ...readsAreMonotone(answered),
    ...staleMeansNewer(answered),
    ...listItemsAreFolds(answered, log, texts),
    ...listsAreComplete(answered, log, refused),
  ]
}
