/** How long Kafka keeps facts, in the topics of aggregates and of subscriptions. Older facts remain at GET /events. */
export const TOPIC_RETENTION_MS = 7 * 24 * 60 * 60 * 1000
