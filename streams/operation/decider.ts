import type { DataOf } from '../codec.ts'
import { decidedBy, type Decider, type Rejection, reject } from '../decider.ts'
import type { OperationEvent } from './events.ts'

export type ExportTerms = Omit<DataOf<OperationEvent, 'ExportRequested'>, 'metadata' | 'claim'>

/** The description of a finished file. */
export type FileSummary = Omit<DataOf<OperationEvent, 'ExportCompleted'>, keyof ExportTerms | 'attempt' | 'run'>

export type RequestExport = DataOf<OperationEvent, 'ExportRequested'> & { type: 'RequestExport' }
export type StartAttempt = { type: 'StartAttempt'; run: string }
export type FailAttempt = { type: 'FailAttempt'; run: string; code: string }
export type CompleteExport = FileSummary & { type: 'CompleteExport'; run: string }
export type CancelOperation = { type: 'CancelOperation' }
/** `at` is the present time. An operation whose expiry is later stays as it is. */
export type ExpireOperation = { type: 'ExpireOperation'; at: string }
/** Ends a finished export before its time: its file may have a text that was erased. */
export type WithdrawFile = { type: 'WithdrawFile' }
export type OperationCommand =
  | RequestExport
  | StartAttempt
  | FailAttempt
  | CompleteExport
  | CancelOperation
  | ExpireOperation
  | WithdrawFile

export type OperationCode = 'resource_not_found' | 'concurrent_modification'

/** Limits repeated failures, because retrying a bug forever would hide it. */
const FAILURES_MAX = 3
/** Limits attempts, because a crash leaves no event: an export that crashes every worker must end too. */
const ATTEMPTS_MAX = 20
const ATTEMPTS_EXHAUSTED_CODE = 'internal_error'

type Attempted = { readonly terms: ExportTerms; readonly attempt: number }

/**
 * pending ─▶ running ─▶ succeeded, failed or cancelled; succeeded ─▶ expired. A running operation may have several
 * attempts, one after the other. Only the newest may end it, so at most one of two workers does, and no file mixes
 * two attempts. `run` is null between two attempts.
 */
export type OperationState =
  | { readonly status: 'none' }
  | (Attempted & { readonly status: 'pending' })
  | (Attempted & { readonly status: 'running'; readonly run: string | null; readonly failures: number })
  | (Attempted & { readonly status: 'succeeded'; readonly run: string })
  | (Attempted & { readonly status: 'failed' | 'cancelled' | 'expired' })

type Decision = readonly OperationEvent[] | Rejection<OperationCode>
const NOTHING: readonly OperationEvent[] = []

const request = ({ type: _, ...terms }: RequestExport, operation: OperationState): Decision =>
  operation.status === 'none' ? [{ type: 'ExportRequested', data: terms }] : reject('concurrent_modification')

const start = ({ run }: StartAttempt, operation: OperationState): Decision => {
  if (operation.status === 'none') return reject('resource_not_found')
  if (operation.status !== 'pending' && operation.status !== 'running') return NOTHING
  if (operation.status === 'running' && operation.run === run) return NOTHING
  const { attempt } = operation
  if (attempt === ATTEMPTS_MAX) return [{ type: 'OperationFailed', data: { attempt, code: ATTEMPTS_EXHAUSTED_CODE } }]
  return [{ type: 'OperationStarted', data: { attempt: attempt + 1, run } }]
}

const fail = ({ run, code }: FailAttempt, operation: OperationState): Decision => {
  if (operation.status === 'none') return reject('resource_not_found')
  if (operation.status !== 'running' || operation.run !== run) return NOTHING
  const { attempt, failures } = operation
  if (failures + 1 >= FAILURES_MAX) return [{ type: 'OperationFailed', data: { attempt, code } }]
  return [{ type: 'OperationAttemptFailed', data: { attempt, run, code } }]
}

const complete = ({ type: _, run, ...summary }: CompleteExport, operation: OperationState): Decision => {
  if (operation.status === 'none') return reject('resource_not_found')
  if (operation.status === 'succeeded' && operation.run === run) return NOTHING
  if (operation.status !== 'running' || operation.run !== run) return reject('concurrent_modification')
  const { attempt, terms } = operation
  return [{ type: 'ExportCompleted', data: { ...terms, attempt, run, ...summary } }]
}

// Cancelling an ended operation is no conflict: the answer shows how it ended.
const cancel = (_: CancelOperation, operation: OperationState): Decision => {
  if (operation.status === 'none') return reject('resource_not_found')
  const isOpen = operation.status === 'pending' || operation.status === 'running'
  return isOpen ? [{ type: 'OperationCancelled', data: {} }] : NOTHING
}

const expire = ({ at }: ExpireOperation, operation: OperationState): Decision => {
  if (operation.status === 'none') return reject('resource_not_found')
  const hasEnded = operation.status !== 'pending' && operation.status !== 'running' && operation.status !== 'succeeded'
  if (hasEnded || Date.parse(at) < Date.parse(operation.terms.expires_at)) return NOTHING
  return [{ type: 'OperationExpired', data: {} }]
}

const withdraw = (_: WithdrawFile, operation: OperationState): Decision => {
  if (operation.status === 'none') return reject('resource_not_found')
  return operation.status === 'succeeded' ? [{ type: 'OperationExpired', data: {} }] : NOTHING
}

const failuresOf = (operation: OperationState): number => (operation.status === 'running' ? operation.failures : 0)

const evolve = (operation: OperationState, event: OperationEvent): OperationState => {
  if (event.type === 'ExportRequested') {
    const { metadata: _metadata, claim: _claim, ...terms } = event.data
    return { status: 'pending', terms, attempt: 0 }
  }
  if (operation.status === 'none') return operation
  const { terms } = operation
  switch (event.type) {
    case 'OperationStarted':
      return { status: 'running', terms, ...event.data, failures: failuresOf(operation) }
    case 'OperationAttemptFailed':
      return {
        status: 'running',
        terms,
        attempt: event.data.attempt,
        run: null,
        failures: failuresOf(operation) + 1,
      }
    case 'ExportCompleted':
      return { status: 'succeeded', terms, attempt: event.data.attempt, run: event.data.run }
    case 'OperationFailed':
      return { status: 'failed', terms, attempt: event.data.attempt }
    case 'OperationCancelled':
      return { status: 'cancelled', terms, attempt: operation.attempt }
    case 'OperationExpired':
      return { status: 'expired', terms, attempt: operation.attempt }
  }
}

/** ATTEMPTS_MAX bounds the stream. */
export const operationDecider: Decider<OperationState, OperationCommand, OperationEvent, OperationCode> = {
  initial: { status: 'none' },
  ...decidedBy<OperationCommand, OperationState, Decision>({
    RequestExport: ['unlimited', request],
    StartAttempt: ['unlimited', start],
    FailAttempt: ['unlimited', fail],
    CompleteExport: ['unlimited', complete],
    CancelOperation: ['unlimited', cancel],
    ExpireOperation: ['unlimited', expire],
    WithdrawFile: ['unlimited', withdraw],
  }),
  evolve,
}
