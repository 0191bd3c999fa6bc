/**
 * All times that a request may take, each derived from the one that it must fit into (contract.md §4 and §10). They are
 * measured on the monotonic clock, from when the request is there; the time in which its body arrives is not counted.
 */

/** A request is answered within this time. */
export const REQUEST_DEADLINE_MS = 10_000
export const PAYMENT_DEADLINE_MS = REQUEST_DEADLINE_MS / 2

/** One append. Shorter than the shortest deadline, so that the caller learns why there is no answer. */
export const APPEND_DEADLINE_MS = (PAYMENT_DEADLINE_MS * 3) / 5

/** A request waits this long for another one with its key that has nothing durable yet. */
export const KEY_WAIT_MS = (PAYMENT_DEADLINE_MS * 2) / 5

/** The longest wait within a deadline, for an outcome or for a read model: a fifth is left in which to answer. */
export const waitMaxMs = (deadlineMs: number): number => (deadlineMs * 4) / 5

/** Creating a subscription waits this long for its topic, once the subscription is durable. */
export const TOPIC_WAIT_MS = (REQUEST_DEADLINE_MS * 3) / 10

/** A service that stops lets the requests at work come to their end. */
export const DRAIN_MS = REQUEST_DEADLINE_MS

/**
 * Recovery takes over work that a request has begun and not ended. Not before the deadline of the request is over: until
 * then the two would only race for the same streams.
 */
export const PAYMENT_GRACE_MS = PAYMENT_DEADLINE_MS
export const REQUEST_GRACE_MS = REQUEST_DEADLINE_MS
