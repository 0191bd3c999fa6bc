import type { World } from '../ports.ts'
import { backoffMs, jittered } from '../lib/time.ts'

/**
 * Time budgets of a request, each derived from the one that it must fit into. They are measured on the monotonic clock
 * from the moment the caller is identified and has a slot; the arrival of the body is not counted. The times of
 * recovery are in src/processes/recoveryTimes.ts, those of statements in src/adapters/postgres/database.ts.
 */

/** A request is answered within this time; a request for a payment within PAYMENT_DEADLINE_MS. */
export const REQUEST_DEADLINE_MS = 10_000
export const PAYMENT_DEADLINE_MS = REQUEST_DEADLINE_MS / 2

/** The time limit of one append. It is shorter than the shortest deadline, so the caller learns the cause. */
export const APPEND_DEADLINE_MS = (PAYMENT_DEADLINE_MS * 3) / 5

/** A request waits this long for a concurrent request with its key that has nothing durable yet. */
export const KEY_WAIT_MS = (PAYMENT_DEADLINE_MS * 2) / 5

/** The longest wait for an outcome or a read model: the last fifth of a deadline is for sending the answer. */
export const waitMaxMs = (deadlineMs: number): number => (deadlineMs * 4) / 5

/** Creating a subscription waits this long for its topic, once the subscription is durable. */
export const TOPIC_WAIT_MS = (REQUEST_DEADLINE_MS * 3) / 10

/** A request waits this long for its turn, before its deadline begins. */
export const TURN_WAIT_MS = 5_000

/** Graceful shutdown waits this long for in-flight requests: as long as the longest takes once its body has arrived. */
export const DRAIN_MS = TURN_WAIT_MS + REQUEST_DEADLINE_MS

/**
 * The time for a whole shutdown, after SHUTDOWN_DELAY. Feeds and embedded services end after the requests, within the
 * last five seconds.
 */
export const SHUTDOWN_MAX_MS = DRAIN_MS + 5_000

const BACKOFF_MS = 5
const BACKOFF_MAX_MS = 200

export const pauseBefore = (attempt: number, world: World): Promise<void> => {
  const random = (world.randomBytes(1)[0] ?? 0) / 255
  return world.sleep(jittered(backoffMs(attempt, BACKOFF_MS, BACKOFF_MAX_MS), random))
}
