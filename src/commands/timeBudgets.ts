/**
 * Time budgets of a request, each derived from the one that it must fit into. They are measured on the monotonic clock from the
 * moment the caller is identified and has a slot; the arrival of the body is not counted.
 */

/** A request is answered within this time; a request for a payment within PAYMENT_DEADLINE_MS. */
export const REQUEST_DEADLINE_MS = 10_000
export const PAYMENT_DEADLINE_MS = REQUEST_DEADLINE_MS / 2

/** The time limit of one append. It is shorter than the shortest deadline, so that the caller learns the cause. */
export const APPEND_DEADLINE_MS = (PAYMENT_DEADLINE_MS * 3) / 5

/** A request waits this long for a concurrent request with its key that has nothing durable yet. */
export const KEY_WAIT_MS = (PAYMENT_DEADLINE_MS * 2) / 5

/**
 * The longest wait for an outcome (a payment without one is then answered with 202) or for a read model, within a deadline.
 * The last fifth of the deadline is left for sending the answer.
 */
export const waitMaxMs = (deadlineMs: number): number => (deadlineMs * 4) / 5

/** Creating a subscription waits this long for its topic, once the subscription is durable. */
export const TOPIC_WAIT_MS = (REQUEST_DEADLINE_MS * 3) / 10

/** A service that stops waits this long for the requests at work. */
export const DRAIN_MS = REQUEST_DEADLINE_MS

/**
 * Unfinished work is finished within this time after everything answers again, whether or not the process that began it
 * is still there. It is more than the sum of these times: a successor takes over and reads what is open, the request
 * keeps its grace, recovery looks at what is due, and makes the appends that are left.
 */
export const RECOVERED_WITHIN_MS = 10_000
export const TAKE_OVER_MS = 2_000
export const RECOVERY_APPENDS_MS = 2_000

/** The times of recovery (src/processes/processManager.ts): how often it looks for tasks that are due. */
export const RECOVERY_TICK_MS = 250
/** A task that could not be finished is tried again after this time. */
export const RECOVERY_FAILED_RETRY_MS = 30_000
/** Shorter, because the task did not fail: another writer of the stream was first. */
export const RECOVERY_CONTENDED_RETRY_MS = 1_000

/**
 * Recovery takes over work that a request has begun and not ended within this time. A request whose dependencies answer ends
 * long before. Without the grace the two would race for the same streams, harmless but wasteful: every step is idempotent.
 */
export const REQUEST_GRACE_MS = REQUEST_DEADLINE_MS / 2
/** A payment has its whole deadline. */
export const PAYMENT_GRACE_MS = PAYMENT_DEADLINE_MS
