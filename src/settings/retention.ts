import { DAY_MS } from '../lib/time.ts'

/** How long Kafka keeps facts, in the topics of aggregates and of subscriptions. Older facts remain at GET /events. */
export const TOPIC_RETENTION_MS = 7 * DAY_MS

/** How long an idempotency key is remembered, unless IDEMPOTENCY_RETENTION says otherwise. */
export const DEFAULT_IDEMPOTENCY_RETENTION_MS = 30 * DAY_MS
