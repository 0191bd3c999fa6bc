import { type Database, type Row, type Snapshot, type Sql, Unavailable } from '../../src/ports.ts'
import { createLeases, type Leases } from './leases.ts'
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
  readonly takeOvers: Leases['takeOvers']
  /** Resolves when no statement is under way. */
  readonly idle: () => Promise<unknown>
  /**
   * Copies all tables at this time. The result restores them, while no process runs: transactions that began before have no
   * effect afterwards.
   */
  readonly backUp: (at: string) => Promise<() => Promise<void>>
  /** The time of the backup from which the tables were restored. */
  readonly restoredTo: () => string | undefined
  /** The personal texts that restores have removed, by their tokens. */
  readonly lostTexts: ReadonlyMap<string, string>
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
  const lostTexts = new Map<string, string>()
  let restores = 0
  let restoredTo: string | undefined

  /** `begunAfter`: the number of restores before the request, or before the transaction that it belongs to. */
  const request = <T>(machine: Machine, writes: boolean, effect: () => Promise<T>, begunAfter = restores): Promise<T> =>
    network.request({
      machine,
      server: 'database',
      writes,
      deadlineMs: STATEMENT_DEADLINE_MS,
      effect: () => {
        if (begunAfter === restores) return effect()
        throw new Unavailable('database', {
          effect: writes ? 'unknown' : 'none',
          cause: new Error('The server was restored.'),
        })
      },
    })
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
    const begunAfter = restores
    const sql: Sql = (text, values) =>
      request(machine, false, () => session.statementIn(transaction, text, values), begunAfter)
    try {
      const result = await work(sql)
      const writes = transaction.executed.some(statement => statement.writes)
      await request(machine, writes, () => session.commit(transaction), begunAfter)
      return result
    } finally {
      await session.abandon(transaction)
    }
  }

  /** Copies the tables as they are now beside the live ones, for as long as the work takes. */
  const withSnapshot = async <T>(machine: Machine, work: (snapshot: Snapshot) => Promise<T>): Promise<T> => {
    const begunAfter = restores
    const schema = await request(machine, false, session.snapshot)
    const statement = async <R extends Row>(text: string, values: readonly unknown[] = []): Promise<R[]> => {
      const transaction = { executed: [], schema }
      try {
        return await session.statementIn<R>(transaction, text, values)
      } finally {
        await session.abandon(transaction)
      }
    }
    const read: Sql = (text, values) => request(machine, false, () => statement(text, values), begunAfter)
    const batches: Snapshot['batches'] = async function* <R extends Row>(
      query: { readonly text: string; readonly values: readonly unknown[] },
      size: number,
    ) {
      const rows = await read<R>(query.text, query.values)
      for (let next = 0; next < rows.length; next += size) {
        await request(machine, false, () => Promise.resolve(), begunAfter)
        yield rows.slice(next, next + size)
      }
    }
    return work({ sql: read, batches }).finally(() => session.releaseSnapshot(schema))
  }

  const textsByToken = async (): Promise<ReadonlyMap<string, string>> => {
    const rows = await session.statement<{ token: string; text: string }>('select token, text from personal_texts')
    return new Map(rows.map(({ token, text }) => [token, text]))
  }

  const restore = async (schema: string, at: string): Promise<void> => {
    restores += 1
    restoredTo = at
    const before = await textsByToken()
    await session.restore(schema)
    session.releaseSnapshot(schema)
    const after = await textsByToken()
    for (const [token, text] of before) if (!after.has(token)) lostTexts.set(token, text)
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
    backUp: async at => {
      const schema = await session.snapshot()
      return () => restore(schema, at)
    },
    restoredTo: () => restoredTo,
    lostTexts,
    end: () => {
      session.close()
      leases.end()
    },
  }
}
