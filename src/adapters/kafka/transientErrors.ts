import { setTimeout as sleep } from 'node:timers/promises'
import { protocolErrorOf } from './client.ts'

const PAUSE_MS = 500
/** kafkajs takes it for transient, but a topic that nobody creates does not come. */
const UNKNOWN_TOPIC = 'UNKNOWN_TOPIC_OR_PARTITION'

/** kafkajs keeps to itself why no broker named one: it is not available yet, or this client may not read in the group. */
export const hasNoCoordinator = (error: unknown): boolean =>
  error instanceof Error && (error.name === 'KafkaJSGroupCoordinatorNotFound' || hasNoCoordinator(error.cause))

/**
 * Whether a broker that answers says that it cannot do this yet, as a new one does that is not the coordinator of a group
 * yet. No error of a connection is transient in this sense.
 */
export const isTransient = (error: unknown): boolean => {
  if (!(error instanceof Error)) return false
  const isRetriable = 'type' in error && 'retriable' in error && error.retriable === true
  return (
    (isRetriable && protocolErrorOf(error) !== UNKNOWN_TOPIC) || hasNoCoordinator(error) || isTransient(error.cause)
  )
}

/** Repeats the work as long as its errors are transient, and rejects with the last one after `maxMs`. */
export const repeatTransient = async <T>(work: () => Promise<T>, maxMs: number, signal?: AbortSignal): Promise<T> => {
  const deadlineMs = performance.now() + maxMs
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!isTransient(error) || performance.now() + PAUSE_MS > deadlineMs) throw error
      await sleep(PAUSE_MS, undefined, { signal })
    }
  }
}
