import type { Database, Row, Snapshot, Sql } from '../../src/ports.ts'
import { Unavailable } from '../../src/ports.ts'
import type { Machine } from './machine.ts'
import type { Network } from './network.ts'
import type { Engine } from './postgres.ts'
import type { Random } from './random.ts'

/**
 * The database of all processes of a run, on one session of Postgres. Statements of different transactions interleave:
 * a transaction that another statement interrupts is rolled back on the session and repeated before its next statement.
 * Its earlier results stay as returned, as under "read committed". A write that would now have another effect is one
 * that would have waited for a lock; its transaction gets the error of a lost connection.
 */
export type SimulatedDatabase = {
  readonly open: (machine: Machine) => Database
  /** Ends the sessions of this process, and with them its locks: it notices a little later. */
  readonly endSessions: (machine: Machine) => void
  readonly takeOvers: () => number
  /** Resolves when nothing is left to clear away. */
  readonly idle: () => Promise<unknown>
  /** Ends every turn that was ever taken: a signal that is never aborted is kept for as long as this process lives. */
  readonly end: () => void
}

export type DatabaseDependencies = {
  readonly random: Random
  readonly network: Network
  readonly engine: Engine
}

const STATEMENT_DEADLINE_MS = 2_500
/** A process learns within this time that a lock was given up; it asks again now and then all the same. */
const LOCK_NOTICE_MAX_MS = 500
const LOCK_POLL_MS = 2_000
const NOTICE_MAX_MS = 4_000

type Told = {
  readonly text: string
  readonly values: readonly unknown[]
  readonly rows: string
  readonly writes: boolean
}
type Transaction = { readonly told: Told[]; readonly schema: string | undefined }
type Lease = { holder: Machine | undefined; epoch: bigint; lose: () => void }

const WRITES = /^\s*(insert|update|delete|with|create|truncate)|for (no key )?(update|share)/i
const asText = (rows: readonly Row[]): string =>
  JSON.stringify(rows, (_, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value))

/** The one session, which belongs to the transaction that used it last until another statement comes. */
const createSession = (engine: Engine) => {
  let current: Transaction | undefined
  let isClosed = false

  const leave = async (): Promise<void> => {
    if (current === undefined) return
    current = undefined
    await engine.run('rollback')
  }

  const replay = async ({ told }: Transaction): Promise<void> => {
    for (const { text, values, rows, writes } of told) {
      const again = await engine.run(text, values)
      if (!writes || asText(again) === rows) continue
      await leave()
      throw new Unavailable('database', 'none', new Error('A lock that this transaction waited for was not given up.'))
    }
  }

  const enter = async (transaction: Transaction): Promise<void> => {
    if (current === transaction) return
    await leave()
    const path = transaction.schema && `; set local search_path = ${transaction.schema}, public`
    await engine.run(`begin${path ?? ''}`)
    current = transaction
    await replay(transaction)
  }

  let last: Promise<unknown> = Promise.resolve()
  /** One statement at a time: what a rejected transaction leaves behind is cleared before the next one comes. */
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const mine = last.then(work)
    last = mine.catch(() => undefined)
    return mine
  }

  return {
    alone: <R extends Row>(text: string, values: readonly unknown[] = []): Promise<R[]> =>
      inTurn(async () => {
        await leave()
        await engine.vacuumWhenDue()
        return engine.run<R>(text, values)
      }),
    snapshot: (): Promise<string> =>
      inTurn(async () => {
        await leave()
        return engine.snapshot()
      }),
    release: (schema: string): void => {
      if (!isClosed) engine.release(schema)
    },
    inside: <R extends Row>(transaction: Transaction, text: string, values: readonly unknown[] = []): Promise<R[]> =>
      inTurn(async () => {
        await enter(transaction)
        const rows = await engine.run<R>(text, values)
        transaction.told.push({ text, values, rows: asText(rows), writes: WRITES.test(text) })
        return rows
      }),
    commit: (transaction: Transaction): Promise<void> =>
      inTurn(async () => {
        if (transaction.told.length === 0) return
        await enter(transaction)
        current = undefined
        await engine.run('commit')
      }),
    abandon: (transaction: Transaction): Promise<void> =>
      inTurn(async () => {
        if (current === transaction) await leave()
      }),
    /** The engine is for another run from now on. */
    close: (): void => {
      isClosed = true
      current = undefined
    },
    idle: (): Promise<unknown> => last,
  }
}

export const createDatabase = ({ random, network, engine }: DatabaseDependencies): SimulatedDatabase => {
  const session = createSession(engine)
  const leases = new Map<string, Lease>()
  const turns = new Set<AbortController>()
  let takeOvers = 0

  const ask = <T>(machine: Machine, writes: boolean, effect: () => Promise<T>): Promise<T> =>
    network.request({ machine, server: 'database', writes, deadlineMs: STATEMENT_DEADLINE_MS, effect })

  const sqlOf =
    (machine: Machine): Sql =>
    (text, values) =>
      ask(machine, WRITES.test(text), () => session.alone(text, values))

  const inTransaction = async <T>(
    machine: Machine,
    transaction: Transaction,
    work: (sql: Sql) => Promise<T>,
  ): Promise<T> => {
    const sql: Sql = (text, values) => ask(machine, false, () => session.inside(transaction, text, values))
    try {
      const result = await work(sql)
      const writes = transaction.told.some(({ writes: one }) => one)
      await ask(machine, writes, () => session.commit(transaction))
      return result
    } finally {
      await session.abandon(transaction)
    }
  }

  /** The tables as they are now, copied beside the live ones for as long as the work takes. */
  const snapshotOf = async <T>(machine: Machine, work: (snapshot: Snapshot) => Promise<T>): Promise<T> => {
    const schema = await ask(machine, false, session.snapshot)
    const read: Sql = (text, values) =>
      ask(machine, false, async () => {
        const transaction = { told: [], schema }
        try {
          return await session.inside(transaction, text, values)
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
        await ask(machine, false, () => Promise.resolve())
        yield rows.slice(next, next + size)
      }
    }
    return work({ sql: read, batches }).finally(() => session.release(schema))
  }

  const leaseOf = (name: string): Lease => {
    const lease = leases.get(name) ?? { holder: undefined, epoch: 0n, lose: () => undefined }
    leases.set(name, lease)
    return lease
  }

  const waiting = new Set<() => void>()

  const release = (lease: Lease): void => {
    lease.holder = undefined
    const woken = [...waiting]
    waiting.clear()
    for (const wake of woken) wake()
  }

  /** Resolves some time after any lock was given up, or when it is time to ask again. */
  const mayBeFree = (machine: Machine, stop: AbortSignal): Promise<void> =>
    new Promise(resolve => {
      const end = (): void => {
        waiting.delete(wake)
        stop.removeEventListener('abort', end)
        cancel()
        resolve()
      }
      const wake = (): void => void machine.deliver(random.next() * LOCK_NOTICE_MAX_MS, end)
      const cancel = machine.deliver(LOCK_POLL_MS * (1 + random.next()), end)
      waiting.add(wake)
      stop.addEventListener('abort', end)
    })

  const tryTake = (machine: Machine, name: string): bigint | undefined => {
    const lease = leaseOf(name)
    // The session of a process that has ended is closed, whatever it had asked for.
    if (lease.holder !== undefined || !machine.isAlive()) return undefined
    if (lease.epoch > 0n) takeOvers += 1
    lease.holder = machine
    lease.epoch += 1n
    return lease.epoch
  }

  /** One session that asks for the lock. It ends, and gives the lock up, when its process no longer waits for the answer. */
  const askForLock = async (machine: Machine, name: string): Promise<bigint | undefined> => {
    let isOpen = true
    let taken: bigint | undefined
    const effect = async (): Promise<bigint | undefined> => (taken = isOpen ? tryTake(machine, name) : undefined)
    try {
      return await ask(machine, false, effect)
    } catch {
      isOpen = false
      const lease = leaseOf(name)
      if (taken !== undefined && lease.epoch === taken) release(lease)
      return undefined
    }
  }

  type Waiting = Parameters<Database['exclusively']>[3]
  const waitForLock = async (
    machine: Machine,
    name: string,
    stop: AbortSignal,
    waiting: Waiting,
  ): Promise<bigint | undefined> => {
    while (!stop.aborted) {
      const epoch = await askForLock(machine, name)
      if (epoch !== undefined) return epoch
      waiting?.(undefined)
      await mayBeFree(machine, stop)
    }
    return undefined
  }

  const exclusively =
    (machine: Machine): Database['exclusively'] =>
    async (name, stop, work, waiting) => {
      const epoch = await waitForLock(machine, name, stop, waiting)
      if (epoch === undefined) return
      const lost = new AbortController()
      turns.add(lost)
      const lease = leaseOf(name)
      lease.lose = () => lost.abort(new Error('The session that held the lock ended.'))
      try {
        await work({ epoch, signal: AbortSignal.any([stop, lost.signal]) })
      } finally {
        if (lease.epoch === epoch) release(lease)
      }
    }

  return {
    open: machine => ({
      sql: sqlOf(machine),
      transaction: work => inTransaction(machine, { told: [], schema: undefined }, work),
      snapshot: work => snapshotOf(machine, work),
      exclusively: exclusively(machine),
      close: () => Promise.resolve(),
    }),
    endSessions: machine => {
      for (const lease of leases.values()) {
        if (lease.holder !== machine) continue
        release(lease)
        const { lose } = lease
        machine.deliver(random.next() * NOTICE_MAX_MS, lose)
      }
    },
    takeOvers: () => takeOvers,
    idle: () => session.idle(),
    end: () => {
      session.close()
      for (const turn of turns) turn.abort()
    },
  }
}
