import { type Database, Unavailable } from '../../src/ports.ts'

/** A database that a test can switch off, and that counts the statements on personal texts, and those that it refused. */
export type Switchable = {
  readonly database: Database
  readonly state: { isDown: boolean; statements: number; refused: number }
}

export const switchable = (real: Database): Switchable => {
  const state = { isDown: false, statements: 0, refused: 0 }
  const down = (effect: 'none' | 'unknown') => {
    state.refused += 1
    return Promise.reject(new Unavailable('database', { effect }))
  }
  const database: Database = {
    ...real,
    sql: (text, values) => {
      // A lost answer of a write: whether the text was stored is unknown.
      if (state.isDown) return down(/^\s*select/.test(text) ? 'none' : 'unknown')
      if (text.includes('personal_texts')) state.statements += 1
      return real.sql(text, values)
    },
    transaction: (work, timeoutMs) => (state.isDown ? down('none') : real.transaction(work, timeoutMs)),
  }
  return { database, state }
}
