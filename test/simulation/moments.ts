import type { Database, EventStore, NewEvent, Sql } from '../../src/ports.ts'
import type { Machine } from './machine.ts'

/**
 * Points of a process's work at which a fault may strike: between two appends of one command, say, which are a few
 * milliseconds apart and which no time drawn beforehand would meet.
 *
 *   appended    the process has the answer that these events are stored
 *   statement   the process is about to send this statement
 */
export type Moment =
  | { readonly kind: 'appended'; readonly machine: Machine; readonly events: readonly NewEvent[] }
  | { readonly kind: 'statement'; readonly machine: Machine; readonly text: string }

export type Moments = {
  /** Calls `strike`, once, at the first moment that fits. */
  readonly next: (fits: (moment: Moment) => boolean, strike: (moment: Moment) => void) => void
  readonly tell: (moment: Moment) => void
  /** From here on none of those that wait strikes any more. */
  readonly clear: () => void
}

type Waiting = { readonly fits: (moment: Moment) => boolean; readonly strike: (moment: Moment) => void }

export const createMoments = (): Moments => {
  const waiting = new Set<Waiting>()
  return {
    next: (fits, strike) => void waiting.add({ fits, strike }),
    clear: () => waiting.clear(),
    tell: moment => {
      for (const one of waiting) {
        if (!one.fits(moment)) continue
        waiting.delete(one)
        one.strike(moment)
      }
    },
  }
}

/** The store as this process has it, which tells of each append that was answered. */
export const watchedStore = (store: EventStore, machine: Machine, { tell }: Moments): EventStore => ({
  ...store,
  append: async (stream, events, expected) => {
    const appended = await store.append(stream, events, expected)
    if (appended.ok) tell({ kind: 'appended', machine, events })
    return appended
  },
})

/** The database as this process has it, which tells of each statement. */
export const watchedDatabase = (database: Database, machine: Machine, { tell }: Moments): Database => {
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
