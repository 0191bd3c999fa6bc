import type { Rejection } from '../../../streams/decider.ts'
import type { KeyConflict } from '../../commands/idempotency/conflicts.ts'
import { isErrorCode, Problem, type ProblemExtras } from './problemCatalogue.ts'

/**
 * The details of the problems of refused commands: rejections, and conflicts of idempotency keys. Titles:
 * problemCatalogue.ts.
 */

type Recorded = { readonly firstCorrelationId?: string; readonly replayed?: true }

export const problemOfRejection = (rejection: Rejection, { firstCorrelationId, replayed }: Recorded = {}): Problem => {
  if (!isErrorCode(rejection.rejected)) throw new Error(`There is no problem called ${rejection.rejected}.`)
  return new Problem(rejection.rejected, {
    ...explained(rejection),
    ...(firstCorrelationId === undefined ? {} : { correlationId: firstCorrelationId }),
    ...(replayed ? { headers: { 'Idempotent-Replayed': 'true' } } : {}),
  })
}

type Params = NonNullable<Rejection['params']>

const explained = ({ rejected, params = {} }: Rejection): Pick<ProblemExtras, 'detail' | 'members'> => {
  if (rejected === 'too_many_changes') return { detail: tooManyChanges(params) }
  if (rejected === 'payment_exceeds_due' && 'still_due' in params)
    return {
      detail: `Still due: ${params['still_due']} of ${params['amount_due']} ${params['currency']}, in minor units.`,
      members: { still_due: Number(params['still_due']), currency: String(params['currency']) },
    }
  const detail = sentencesOn(rejected, params)
  return detail === '' ? {} : { detail }
}

/** What a refused command found, in a sentence for each parameter. */
const sentencesOn = (code: string, { state, ...params }: Params): string => {
  const sentences = Object.entries(params).flatMap(([name, value]) => SENTENCES[name]?.(value) ?? [])
  const inState = state === undefined ? [] : [`The ${subjectOf(code)} is ${String(state).replaceAll('_', ' ')}.`]
  return [...inState, ...sentences].join(' ')
}

/** The resource whose state a code is about; the refusal of a new payment is about its invoice. */
const subjectOf = (code: string): string => /^(order|payment)_state_conflict$/.exec(code)?.[1] ?? 'invoice'

type Sentence = (value: string | bigint) => string | readonly string[]

const SENTENCES: Readonly<Record<string, Sentence>> = {
  currency: currency =>
    `Only an approved or partially paid invoice accepts payments, and only in its own currency, ${currency}.`,
  refundable: amount => `Amount that can still be refunded, in minor units: ${amount}.`,
  amount_pending: amount => (amount === 0n ? [] : `Pending payments, in minor units: ${amount}.`),
  payment_id: id => `The payment with this reference is ${id}.`,
  order_id: id => `It is the invoice of the order ${id}.`,
  invoice_id: id => `The active invoice of the order is ${id}.`,
}

const tooManyChanges = ({ events }: Params): string =>
  `Its history has ${events} events or more, and this request would add to them. ` +
  'Only operations that end it are still possible: cancel, delete or revoke it, or pay or refund the whole remainder. ' +
  'Create a new resource for further changes.'

/** The problem of a key that was used before. `path`: the path of the resources that the key created. */
export const problemOfKeyConflict = (conflict: KeyConflict, path: string): Problem =>
  conflict.kind === 'key_reused'
    ? keyReused(conflict.pointers)
    : new Problem('idempotency_key_expired', { headers: { Location: `${path}/${conflict.id}` } })

const keyReused = (pointers: readonly string[]): Problem =>
  new Problem('idempotency_key_reused', {
    detail: 'The first request with this key differs in the members that errors lists. Use a new key for a new intent.',
    errors: pointers.map(pointer => ({ pointer, code: 'differs', detail: 'Differs from the first request.' })),
  })
