/**
 * Time budgets of a request, each derived from the one that it must fit into (contract.md §4 and §10). They are
 * measured on the monotonic clock from the moment the request has arrived; receiving its body is not counted.
 */

/** A request is answered within this time. */
export const REQUEST_DEADLINE_MS = 10_000
export const PAYMENT_DEADLINE_MS = REQUEST_DEADLINE_MS / 2

/** The time limit of one append. It is shorter than the shortest deadline, so that the caller learns the cause. */
export const APPEND_DEADLINE_MS = (PAYMENT_DEADLINE_MS * 3) / 5

/** A request waits this long for a concurrent request with its key that has nothing durable yet. */
export const KEY_WAIT_MS = (PAYMENT_DEADLINE_MS * 2) / 5

/** The longest wait for an outcome or a read model within a deadline; a fifth of it is left for the answer. */
export const waitMaxMs = (deadlineMs: number): number => (deadlineMs * 4) / 5

/** Creating a subscription waits this long for its topic, once the subscription is durable. */
export const TOPIC_WAIT_MS = (REQUEST_DEADLINE_MS * 3) / 10

/** A service that stops waits this long for the requests at work. */
export const DRAIN_MS = REQUEST_DEADLINE_MS

/**
 * Recovery takes over unfinished work only after the deadline of its request, because earlier the two would race for
 * the same streams.
 */
export const PAYMENT_GRACE_MS = PAYMENT_DEADLINE_MS
export const REQUEST_GRACE_MS = REQUEST_DEADLINE_MS
