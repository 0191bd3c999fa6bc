import type { Database, EventStore, NewEvent, Sql } from '../../src/ports.ts'
import type { Machine } from './machine.ts'

/**
 * Points of a process's work at which a fault may strike: between two appends of one command, say, which are a few
 * milliseconds apart and which no time drawn beforehand would meet.
 *
 *   appended    the process has the answer that these events are stored
 *   statement   the process is about to send this statement
 */
export type FaultPoint =
  | { readonly kind: 'appended'; readonly machine: Machine; readonly events: readonly NewEvent[] }
  | { readonly kind: 'statement'; readonly machine: Machine; readonly text: string }

export type FaultPoints = {
  /** Calls `strike`, once, at the first point that fits. */
  readonly next: (fits: (point: FaultPoint) => boolean, strike: (point: FaultPoint) => void) => void
  readonly tell: (point: FaultPoint) => void
  /** From here on none of those that wait strikes any more. */
  readonly clear: () => void
}

type Waiting = { readonly fits: (point: FaultPoint) => boolean; readonly strike: (point: FaultPoint) => void }

export const createFaultPoints = (): FaultPoints => {
  const waiting = new Set<Waiting>()
  return {
    next: (fits, strike) => void waiting.add({ fits, strike }),
    clear: () => waiting.clear(),
    tell: point => {
      for (const one of waiting) {
        if (!one.fits(point)) continue
        waiting.delete(one)
        one.strike(point)
      }
    },
  }
}

/** The store as this process has it, which tells of each append that was answered. */
export const watchedStore = (store: EventStore, machine: Machine, { tell }: FaultPoints): EventStore => ({
  ...store,
  append: async (stream, events, expected) => {
    const appended = await store.append(stream, events, expected)
    if (appended.ok) tell({ kind: 'appended', machine, events })
    return appended
  },
})

/** The database as this process has it, which tells of each statement. */
export const watchedDatabase = (database: Database, machine: Machine, { tell }: FaultPoints): Database => {
  const watched =
    (sql: Sql): Sql =>
    (text, values) => {
      tell({ kind: 'statement', machine, text })
      return sql(text, values)
    }
  return {
    ...database,
    sql: watched(database.sql),
    transaction: work => database.transaction(sql => work(watched(sql))),
  }
}
