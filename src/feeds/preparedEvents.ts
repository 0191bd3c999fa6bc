import type { StoredEvent } from '../ports.ts'

/** Results of events that are made once, when they arrive, while an earlier batch is written or sent. */

export type PreparedEvents<T> = {
  /** The result; made now if it was not prepared. Throws if it cannot be made. */
  readonly resultOf: (event: StoredEvent) => T
  /** Makes the result early. If it cannot be made, `resultOf` throws later. */
  readonly prepare: (event: StoredEvent) => void
  /** Removes the results of a batch that was processed. */
  readonly forget: (events: readonly StoredEvent[]) => void
}

export const preparedEvents = <T extends object>(make: (event: StoredEvent) => T): PreparedEvents<T> => {
  const made = new Map<StoredEvent, T>()
  const resultOf = (event: StoredEvent): T => {
    const existing = made.get(event)
    if (existing !== undefined) return existing
    const result = make(event)
    made.set(event, result)
    return result
  }
  return {
    resultOf,
    prepare: event => {
      try {
        resultOf(event)
      } catch {
        // The error belongs to the batch of the event, where `resultOf` throws it again.
      }
    },
    forget: events => {
      for (const event of events) made.delete(event)
    },
  }
}
