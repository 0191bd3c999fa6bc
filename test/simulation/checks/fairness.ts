import { GREEDY } from '../greedyTenant.ts'
import type { Attempt } from '../history.ts'
import type { Plan } from '../plan.ts'
import type { Wait } from '../service.ts'
import { violation, type Violation } from './violation.ts'

/** The limits of the delay that a tenant with hundreds of open requests causes to the others. */

/** A turn lasts 250 ms at most, and a tenant's own requests may hang for as long when a server does. */
const WAIT_MAX_MS = 1_000
/** Beside the time for which a request itself asked to wait. */
const ANSWERED_WITHIN_MS = 2_000
const FAULTLESS: readonly string[] = ['greedy tenant']

const checkWaits = (waits: readonly Wait[]): readonly Violation[] =>
  waits
    .filter(({ tenant, waitedMs }) => tenant !== GREEDY && waitedMs > WAIT_MAX_MS)
    .map(({ tenant, waitedMs }) =>
      violation('no tenant waits for the turns of another', `${tenant} waited ${Math.round(waitedMs)} ms for a turn`),
    )

const waitMs = ({ headers = {} }: Attempt['sent']): number =>
  Number(/wait=(\d+)/.exec(headers['prefer'] ?? '')?.[1] ?? 0) * 1_000

const checkAnswers = (attempts: readonly Attempt[]): readonly Violation[] =>
  attempts
    .filter(({ sent, beganMs, endedMs }) => endedMs - beganMs > ANSWERED_WITHIN_MS + waitMs(sent))
    .map(({ sent, beganMs, endedMs }) =>
      violation(
        'beside a greedy tenant the others are answered in time',
        `${sent.correlationId} ${sent.operation} took ${Math.round(endedMs - beganMs)} ms`,
      ),
    )

/** Answers have their bound in runs without other faults, which delay answers too. */
export const checkFairness = (
  waits: readonly Wait[],
  attempts: readonly Attempt[],
  plan: Plan,
): readonly Violation[] => {
  const isFaultless = plan.every(({ kind, name }) => kind === 'action' || FAULTLESS.includes(name))
  return [...checkWaits(waits), ...(isFaultless ? checkAnswers(attempts) : [])]
}
