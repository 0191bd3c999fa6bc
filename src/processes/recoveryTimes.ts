import { PAYMENT_DEADLINE_MS, REQUEST_DEADLINE_MS } from '../settings/timeBudgets.ts'

/** The times of recovery: when process managers take over unfinished work, and when they try again. */

/**
 * Within this time after everything answers again, unfinished work is finished, whoever began it. More than the sum of
 * the take-over, the request's grace, the next look and the appends that are left.
 */
export const RECOVERED_WITHIN_MS = 10_000
export const TAKE_OVER_MS = 2_000
export const RECOVERY_APPENDS_MS = 2_000

/** How often due tasks are looked at, which is how late they are finished at most. */
export const RECOVERY_TICK_MS = 250
/** A task that could not be finished is tried again after this time. */
export const RECOVERY_FAILED_RETRY_MS = 30_000
/** Shorter, because the task did not fail: another writer of the stream was first. */
export const RECOVERY_CONTENDED_RETRY_MS = 1_000
/** The same for a task whose dependency did not answer: the cause may concern this task alone. */
export const RECOVERY_UNAVAILABLE_RETRY_MS = 1_000

/** When recovery takes over. Without the grace the two would race for the same streams: harmless but wasteful. */
export const REQUEST_GRACE_MS = REQUEST_DEADLINE_MS / 2
/** A payment has its whole deadline. */
export const PAYMENT_GRACE_MS = PAYMENT_DEADLINE_MS
