/** The database port on Postgres, with errors that tell whether a write may have happened. */

import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import { type ClientConfig, Pool, type PoolClient } from 'pg'
import { type Database, type Row, type Snapshot, Unavailable } from '../../ports.ts'
import { withBinaryArrays } from './arrayParameters.ts'
import { CONNECT_TIMEOUT_MS, type Connect, type Connection, connectInTurn } from './connections.ts'
import { copyOf } from './copiedRows.ts'
import { endsConnection, mayWrite, snapshotError, statementError } from './errors.ts'
import { holdExclusively, type LeaseOptions, leaseDefaults } from './lease.ts'
import { type Send, sendInTurn, type Statement } from './transactionTurns.ts'
import { valueTypes } from './types.ts'

export { fence, type LeaseOptions, LeaseLost } from './lease.ts'

export type DatabaseOptions = {
  readonly connectionString: string
  /** Postgres cancels a statement after this time; the client stops waiting a little later. */
  readonly statementTimeoutMs?: number
  /** The service's pools are sized in src/compose/databasePools.ts; without a size, as in tools, pg's default (10) applies. */
  readonly poolMax?: number
  readonly applicationName?: string
  /** Parameters of Postgres for each connection. */
  readonly settings?: Readonly<Record<string, string>>
  readonly lease?: Partial<LeaseOptions>
  /** `heavy`: a statement takes milliseconds of a processor, so a tenant pauses between its own beside others. */
  readonly statements?: 'light' | 'heavy'
}

const STATEMENT_TIMEOUT_MS = 2_000
/** The client waits longer than the server, because the server's error is more specific than a client timeout. */
const ANSWER_GRACE_MS = 500
/** Ends transactions of a stopped process, whose row locks would otherwise remain. */
const IDLE_IN_TRANSACTION_MS = 8_000
/** A hung server does not close its side of a connection. */
const CLOSE_MAX_MS = 2_000
const PREPARED_MAX = 256
const SEEN_ONCE_MAX = 1_024
/** Background reads of a whole table may wait longer for a batch than requests. */
const SNAPSHOT_STATEMENT_TIMEOUT_MS = 30_000

const statementName = (text: string): string =>
  `s_${createHash('sha256').update(text).digest('base64url').slice(0, 32)}`

/** A named statement is planned once per connection, which keeps it for its lifetime, so names are bounded. */
const statementNames = (): ((text: string) => string | undefined) => {
  const names = new Map<string, string>()
  const seenOnce = new LRUCache<string, true>({ max: SEEN_ONCE_MAX })
  return text => {
    const name = names.get(text)
    if (name !== undefined || names.size >= PREPARED_MAX) return name
    if (seenOnce.delete(text)) return names.set(text, statementName(text)).get(text)
    seenOnce.set(text, true)
    return undefined
  }
}

/** A text without values may contain several statements, which cannot be prepared. */
const toStatement = (
  text: string,
  values: readonly unknown[] | undefined,
  nameOf: (text: string) => string | undefined,
): Statement => {
  if (values === undefined || values.length === 0) return { text }
  const name = nameOf(text)
  return { text, values: withBinaryArrays(text, values), ...(name === undefined ? {} : { name }) }
}

const runStatement = async <R extends Row>(connect: Connect, statement: Statement): Promise<R[]> => {
  const { client, release } = await connect()
  try {
    const { rows } = await client.query<R>(statement)
    release()
    return rows
  } catch (error) {
    release(endsConnection(error))
    throw statementError(error, mayWrite(statement.text) ? 'unknown' : 'none')
  }
}

const commit = async (client: PoolClient): Promise<void> => {
  const { command } = await client.query('commit').catch((error: unknown) => {
    // Only a commit can be lost after it took effect; without a commit Postgres rolls back.
    throw statementError(error, 'unknown')
  })
  // Postgres answers the commit of a failed transaction with success and the command tag ROLLBACK.
  if (command !== 'COMMIT') throw new Error('The transaction was rolled back, because a failed statement was ignored.')
}

const rollback = async ({ client, release }: Connection, cause: unknown): Promise<void> => {
  const broken = await client.query('rollback').then(
    () => false,
    () => true,
  )
  release(broken || (cause instanceof Unavailable && endsConnection(cause.cause)))
}

/** `begin` starts the transaction; `work` sends its statements on the same connection. */
const inTransaction = async <T>(connect: Connect, begin: string, work: (send: Send) => Promise<T>): Promise<T> => {
  const connection = await connect()
  const { client, release } = connection
  const { send, settled, end } = sendInTurn(client)
  try {
    await send({ text: begin })
    const result = await work(send)
    await settled()
    end()
    await commit(client)
    release()
    return result
  } catch (error) {
    end()
    await settled()
    await rollback(connection, error)
    throw error
  }
}

const snapshotOf = (send: Send, timeoutMs: number): Snapshot => {
  const sendLong: Send = async <R extends Row>(statement: Statement) => {
    try {
      return await send<R>({ ...statement, query_timeout: timeoutMs + ANSWER_GRACE_MS })
    } catch (error) {
      throw snapshotError(error)
    }
  }
  let cursors = 0
  return {
    sql: async (text, values) => await sendLong(toStatement(text, values, () => undefined)),
    batches: async function* <R extends Row>(query: { text: string; values: readonly unknown[] }, size: number) {
      const cursor = `batches_${++cursors}`
      await sendLong(toStatement(`declare ${cursor} no scroll cursor for ${query.text}`, query.values, () => undefined))
      const fetch = (): Promise<R[]> => {
        const fetched = sendLong<R>({ text: `fetch ${size} from ${cursor}` })
        // A reader that leaves early never awaits the batch that was read ahead, so its rejection is handled here.
        fetched.catch(() => undefined)
        return fetched
      }
      // Reads one batch ahead, so the database works while the present batch is processed.
      for (let next = fetch(), isLast = false; !isLast; ) {
        const rows = await next
        isLast = rows.length < size
        if (!isLast) next = fetch()
        if (rows.length > 0) yield rows
      }
      await sendLong({ text: `close ${cursor}` })
    },
  }
}

const withTimeout = (begin: string, timeoutMs: number): string => `${begin}; set local statement_timeout = ${timeoutMs}`

const BEGIN_SNAPSHOT = 'begin isolation level repeatable read, read only'

const clientConfig = (options: DatabaseOptions): ClientConfig => {
  const statementTimeoutMs = options.statementTimeoutMs ?? STATEMENT_TIMEOUT_MS
  return {
    connectionString: options.connectionString,
    application_name: options.applicationName ?? 'ledger',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    statement_timeout: statementTimeoutMs,
    query_timeout: statementTimeoutMs + ANSWER_GRACE_MS,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
    options: Object.entries({ timezone: 'UTC', datestyle: 'ISO', ...options.settings })
      .map(([name, value]) => `-c ${name}=${value}`)
      .join(' '),
    keepAlive: true,
  }
}

/** The part of the time for which heavy statements of one tenant use Postgres beside others. With a half, the p99 beside downloads was 78 instead of 36 ms. */
const HEAVY_SHARE = 1 / 8

/**
 * Opens a database. Connects with the first statement. int8 is returned as bigint, numeric as string, timestamptz as an
 * RFC 3339 string in UTC with milliseconds, json parsed; json arrays must be given as text.
 *
 * Throws Unavailable with the effect `none` if there was no connection, if Postgres reported that it did nothing (statement
 * timeout, deadlock, no resources), or before the commit of a transaction; with the effect `unknown` if the response to a
 * write or a commit was lost. Other errors are Postgres's own (`DatabaseError` with its SQLSTATE).
 *
 * The work of `withLease` must fence each of its transactions with the epoch: the feeds do so by their checkpoints
 * (src/feeds/checkpoints.ts), and work without a checkpoint by `fence`. `withLease` resolves when the work ends, also when
 * the lease was lost: call it again to wait for the lease.
 */
export const openDatabase = (options: DatabaseOptions): Database => {
  const config = clientConfig(options)
  const pool = new Pool({
    ...config,
    types: valueTypes,
    ...(options.poolMax === undefined ? {} : { max: options.poolMax }),
  })
  // The pool replaces broken idle connections; without a listener their errors would end the process.
  pool.on('error', () => undefined)
  pool.on('connect', client => void client.on('error', () => undefined))
  const connect = connectInTurn(pool, options.statements === 'heavy' ? HEAVY_SHARE : 1)
  const nameOf = statementNames()
  const lease = { ...leaseDefaults, ...options.lease }
  let closing: Promise<void> | undefined
  return {
    sql: async (text, values) => await runStatement(connect, toStatement(text, values, nameOf)),
    transaction: async (work, timeoutMs) => {
      const begin = timeoutMs === undefined ? 'begin' : withTimeout('begin', timeoutMs)
      const limit = timeoutMs === undefined ? {} : { query_timeout: timeoutMs + ANSWER_GRACE_MS }
      return await inTransaction(connect, begin, send =>
        work(
          async (text, values) => send({ ...toStatement(text, values, nameOf), ...limit }),
          added => {
            const copy = copyOf(added)
            return copy && send({ ...copy, ...limit })
          },
        ),
      )
    },
    snapshot: async (work, timeoutMs = SNAPSHOT_STATEMENT_TIMEOUT_MS) =>
      await inTransaction(connect, withTimeout(BEGIN_SNAPSHOT, timeoutMs), send => work(snapshotOf(send, timeoutMs))),
    withLease: async (name, stop, work, waiting = () => undefined) =>
      await holdExclusively(config, lease, { name, stop, work, waiting }),
    close: async () => await (closing ??= Promise.race([pool.end(), sleep(CLOSE_MAX_MS, undefined, { ref: false })])),
  }
}
