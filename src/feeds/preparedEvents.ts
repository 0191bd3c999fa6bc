import type { StoredEvent } from '../ports.ts'

/** Results of events that are made once, when they arrive, while an earlier batch is written or sent. */

export const preparedEvents = <T extends object>(make: (event: StoredEvent) => T) => {
  const made = new Map<StoredEvent, T>()
  const resultOf = (event: StoredEvent): T => {
    const existing = made.get(event)
    if (existing !== undefined) return existing
    const result = make(event)
    made.set(event, result)
    return result
  }
  return {
    /** The result; made now if it was not prepared. Throws if it cannot be made. */
    resultOf,
    /** Makes the result early. If it cannot be made, `resultOf` throws later. */
    prepare: (event: StoredEvent): void => {
      try {
        resultOf(event)
      } catch {
        // The error belongs to the batch of the event, where `resultOf` throws it again.
      }
    },
    /** Removes the results of a batch that was processed. */
    forget: (events: readonly StoredEvent[]): void => {
      for (const event of events) made.delete(event)
    },
  }
}
export type PreparedEvents<T extends object> = ReturnType<typeof preparedEvents<T>>
