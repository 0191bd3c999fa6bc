import { type Row, Unavailable } from '../../src/ports.ts'
import type { Engine } from './postgres.ts'

/**
 * The one session of the engine, shared by all transactions of a run. Statements of different transactions interleave: when
 * another statement interrupts a transaction, it is rolled back on the session, and its statements are repeated before its next
 * one. Their first results stay as returned, as under "read committed". A repeated write with another result is one that would
 * have waited for a row lock of the other transaction; then the transaction fails as if its connection were lost.
 */

export type Transaction = {
  /** The statements so far, in order. */
  readonly executed: Statement[]
  /** The schema whose tables are read instead of the live ones, for a snapshot. */
  readonly schema: string | undefined
}

type Statement = {
  readonly text: string
  readonly values: readonly unknown[]
  readonly rows: string
  readonly writes: boolean
}

const WRITES = /^\s*(insert|update|delete|with|create|truncate)|for (no key )?(update|share)/i

/** Whether the statement may change rows or lock them. */
export const isWrite = (text: string): boolean => WRITES.test(text)

/** The same for rows in another order: Postgres promises none for the rows that a write returns. */
const asText = (rows: readonly Row[]): string =>
  rows
    .map(row => JSON.stringify(row, (_, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value)))
    .toSorted()
    .join()

/** Runs one task at a time. The task after a failed one begins when the failed one has ended. */
const createSequence = () => {
  let last: Promise<unknown> = Promise.resolve()
  return {
    run: <T>(task: () => Promise<T>): Promise<T> => {
      const result = last.then(task)
      last = result.catch(() => undefined)
      return result
    },
    idle: (): Promise<unknown> => last,
  }
}

/** The transaction that is open in the engine, and the change to another one. */
const createSwitch = (engine: Engine) => {
  let current: Transaction | undefined

  const suspend = async (): Promise<void> => {
    if (current === undefined) return
    current = undefined
    await engine.query('rollback')
  }

  const repeat = async ({ executed }: Transaction): Promise<void> => {
    for (const { text, values, rows, writes } of executed) {
      const again = await engine.query(text, values)
      if (!writes || asText(again) === rows) continue
      await suspend()
      throw new Unavailable('database', {
        effect: 'none',
        cause: new Error('A lock that this transaction waited for was not given up.'),
      })
    }
  }

  const resume = async (transaction: Transaction): Promise<void> => {
    if (current === transaction) return
    await suspend()
    const path = transaction.schema && `; set local search_path = ${transaction.schema}, public`
    await engine.query(`begin${path ?? ''}`)
    current = transaction
    await repeat(transaction)
  }

  return {
    suspend,
    resume,
    isCurrent: (transaction: Transaction): boolean => current === transaction,
    forget: (): void => {
      current = undefined
    },
  }
}

export const createSharedSession = (engine: Engine) => {
  const { suspend, resume, isCurrent, forget } = createSwitch(engine)
  const { run, idle } = createSequence()
  let isClosed = false

  return {
    /** Runs a statement outside of any transaction. */
    statement: <R extends Row>(text: string, values: readonly unknown[] = []): Promise<R[]> =>
      run(async () => {
        await suspend()
        await engine.vacuumWhenDue()
        return engine.query<R>(text, values)
      }),
    statementIn: <R extends Row>(
      transaction: Transaction,
      text: string,
      values: readonly unknown[] = [],
    ): Promise<R[]> =>
      run(async () => {
        await resume(transaction)
        const rows = await engine.query<R>(text, values)
        transaction.executed.push({ text, values, rows: asText(rows), writes: isWrite(text) })
        return rows
      }),
    commit: (transaction: Transaction): Promise<void> =>
      run(async () => {
        if (transaction.executed.length === 0) return
        await resume(transaction)
        forget()
        await engine.query('commit')
      }),
    /** Rolls the transaction back, unless it has been committed. */
    abandon: (transaction: Transaction): Promise<void> =>
      run(async () => {
        if (isCurrent(transaction)) await suspend()
      }),
    /** Copies the tables, and resolves with the name of the schema that has the copies. */
    snapshot: (): Promise<string> =>
      run(async () => {
        await suspend()
        return engine.snapshot()
      }),
    restore: (schema: string): Promise<void> =>
      run(async () => {
        await suspend()
        await engine.restore(schema)
      }),
    releaseSnapshot: (schema: string): void => {
      if (!isClosed) engine.release(schema)
    },
    /** Ends the use of the engine, which serves another run afterwards. */
    close: (): void => {
      isClosed = true
      forget()
    },
    idle,
  }
}
