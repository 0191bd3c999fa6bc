import type { Database, EventStore, NewEvent, Sql } from '../../src/ports.ts'
import type { Machine } from './machine.ts'

/**
 * Points in the work of a process at which a fault may begin, such as between two appends of one command: they are only a few
 * milliseconds apart, so a time that is drawn in advance would hardly ever fall between them.
 *
 *   appended    the process has got the answer that these events are stored
 *   statement   the process is about to send this SQL statement
 */
export type FaultPoint =
  | { readonly kind: 'appended'; readonly machine: Machine; readonly events: readonly NewEvent[] }
  | { readonly kind: 'statement'; readonly machine: Machine; readonly text: string }

export type FaultPoints = {
  /** Calls `begin` once, at the next point that fits. */
  readonly onNext: (fits: (point: FaultPoint) => boolean, begin: (point: FaultPoint) => void) => void
  readonly notify: (point: FaultPoint) => void
  /** Cancels all calls that have not been made. */
  readonly clear: () => void
}

type Awaited = { readonly fits: (point: FaultPoint) => boolean; readonly begin: (point: FaultPoint) => void }

export const createFaultPoints = (): FaultPoints => {
  const waiting = new Set<Awaited>()
  return {
    onNext: (fits, begin) => void waiting.add({ fits, begin }),
    clear: () => waiting.clear(),
    notify: point => {
      for (const one of waiting) {
        if (!one.fits(point)) continue
        waiting.delete(one)
        one.begin(point)
      }
    },
  }
}

/** Wraps the store of a process so that each answered append is a fault point. */
export const notifyingStore = (store: EventStore, machine: Machine, { notify: tell }: FaultPoints): EventStore => ({
  ...store,
  append: async (stream, events, expected) => {
    const appended = await store.append(stream, events, expected)
    if (appended.ok) tell({ kind: 'appended', machine, events })
    return appended
  },
})

/** Wraps the database of a process so that each statement is a fault point. */
export const notifyingDatabase = (database: Database, machine: Machine, { notify: tell }: FaultPoints): Database => {
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
