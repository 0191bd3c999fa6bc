import type { Database, Row, Snapshot, Sql } from '../../src/ports.ts'
import { createLeases } from './leases.ts'
import type { Machine } from './machine.ts'
import type { Network } from './network.ts'
import type { Engine } from './postgres.ts'
import type { Random } from './random.ts'
import { createSharedSession, isWrite, type Transaction } from './sharedSession.ts'

/** The database server of a run, which all of its processes use over the simulated network. */
export type SimulatedDatabase = {
  readonly open: (machine: Machine) => Database
  /** Ends the sessions of the process, and with them its locks. The process notices it some time later. */
  readonly endSessions: (machine: Machine) => void
  /** The number of leases that were acquired after another holder. */
  readonly takeOvers: () => number
  /** Resolves when no statement is under way. */
  readonly idle: () => Promise<unknown>
  /** Ends the use of the engine and aborts the signals of all holders of leases. */
  readonly end: () => void
}

export type DatabaseDependencies = {
  readonly random: Random
  readonly network: Network
  readonly engine: Engine
}

const STATEMENT_DEADLINE_MS = 2_500

export const createDatabase = ({ random, network, engine }: DatabaseDependencies): SimulatedDatabase => {
  const session = createSharedSession(engine)
  const request = <T>(machine: Machine, writes: boolean, effect: () => Promise<T>): Promise<T> =>
    network.request({ machine, server: 'database', writes, deadlineMs: STATEMENT_DEADLINE_MS, effect })
  const leases = createLeases({ random, request: (machine, effect) => request(machine, false, effect) })

  const sqlFor =
    (machine: Machine): Sql =>
    (text, values) =>
      request(machine, isWrite(text), () => session.statement(text, values))

  const inTransaction = async <T>(
    machine: Machine,
    transaction: Transaction,
    work: (sql: Sql) => Promise<T>,
  ): Promise<T> => {
    const sql: Sql = (text, values) => request(machine, false, () => session.statementIn(transaction, text, values))
    try {
      const result = await work(sql)
      const writes = transaction.executed.some(statement => statement.writes)
      await request(machine, writes, () => session.commit(transaction))
      return result
    } finally {
      await session.abandon(transaction)
    }
  }

  /** Copies the tables as they are now beside the live ones, for as long as the work takes. */
  const withSnapshot = async <T>(machine: Machine, work: (snapshot: Snapshot) => Promise<T>): Promise<T> => {
    const schema = await request(machine, false, session.snapshot)
    const read: Sql = (text, values) =>
      request(machine, false, async () => {
        const transaction = { executed: [], schema }
        try {
          return await session.statementIn(transaction, text, values)
        } finally {
          await session.abandon(transaction)
        }
      })
    const batches: Snapshot['batches'] = async function* <R extends Row>(
      query: { readonly text: string; readonly values: readonly unknown[] },
      size: number,
    ) {
      const rows = await read<R>(query.text, query.values)
      for (let next = 0; next < rows.length; next += size) {
        await request(machine, false, () => Promise.resolve())
        yield rows.slice(next, next + size)
      }
    }
    return work({ sql: read, batches }).finally(() => session.releaseSnapshot(schema))
  }

  return {
    open: machine => ({
      sql: sqlFor(machine),
      transaction: work => inTransaction(machine, { executed: [], schema: undefined }, work),
      snapshot: work => withSnapshot(machine, work),
      withLease: leases.withLease(machine),
      close: () => Promise.resolve(),
    }),
    endSessions: leases.endSessions,
    takeOvers: leases.takeOvers,
    idle: session.idle,
    end: () => {
      session.close()
      leases.end()
    },
  }
}
