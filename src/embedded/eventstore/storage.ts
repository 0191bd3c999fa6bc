import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { ADVISORY_LOCKS } from '../../schema/locks.ts'
import { tableStatements } from '../../schema/tables.ts'
import { StartupError } from '../../lib/startupError.ts'
import type { StoredRecord } from './record.ts'
import { type EventRow, queryOf, recordOf } from './rows.ts'
import { INSERT, SELECT_ALL, SELECT_LAST, SELECT_STREAM } from './statements.ts'

/** The Postgres connections of the embedded event store: one writer session with the lock, a pool of readers. */

const LOCK_WAIT_MS = 3000
const LOCK_RETRY_MS = 100
const CONNECT_TIMEOUT_MS = 2000
/** The writer connects at the start, when Postgres and the machine are busy; a failure ends the node. */
const WRITER_CONNECT_TIMEOUT_MS = 30_000
const READERS_MAX = 6

/** Plans are cached while the table grows from nothing: every query here is meant to use an index. */
const PLANNER = '-c enable_seqscan=off -c enable_bitmapscan=off -c enable_sort=off -c jit=off'

export type Direction = 'forwards' | 'backwards'

/** Another node writes to this database. */
export class NodeAlreadyRunning extends StartupError {
  constructor() {
    super('Another event store node is running on this database; stop it first.')
    this.name = 'NodeAlreadyRunning'
  }
}

/** The only session that may write: it holds the lock that excludes a second node, and loses it when it ends. */
export type WriterSession = {
  /** The newest event at the start of the session. */
  readonly last: StoredRecord | undefined
  query<Row>(name: string, text: string, values: readonly unknown[]): Promise<Row[]>
  /** Stores the events in one transaction. They have the same time. */
  insert(records: readonly StoredRecord[]): Promise<void>
  /** Resolves when the connection has ended. */
  readonly lost: Promise<void>
  end(): Promise<void>
}

export const openWriterSession = async (connectionString: string): Promise<WriterSession> => {
  const client = new pg.Client({
    connectionString,
    application_name: 'eventstore-writer',
    connectionTimeoutMillis: WRITER_CONNECT_TIMEOUT_MS,
    options: PLANNER,
  })
  const lost = new Promise<void>(resolve => {
    client.on('error', () => resolve())
    client.on('end', () => resolve())
  })
  await client.connect()
  const query = async <Row>(name: string, text: string, values: readonly unknown[]): Promise<Row[]> =>
    (await client.query(queryOf(name, text, values))).rows as Row[]
  try {
    await lockNode(client)
    await client.query(await tableStatements('embeddedEvents'))
    const [row] = await query<EventRow>('last', SELECT_LAST, [])
    return {
      last: row && recordOf(row),
      query,
      insert: async records => void (await query('insert', INSERT, insertValues(records))),
      lost,
      end: () => client.end(),
    }
  } catch (error) {
    await client.end().catch(() => undefined)
    throw error
  }
}

const insertValues = (records: readonly StoredRecord[]): readonly unknown[] => [
  records.map(({ position }) => position),
  records.map(({ stream }) => stream),
  records.map(({ revision }) => revision),
  records.map(({ id }) => id),
  records.map(({ type }) => type),
  records.map(({ isJson }) => isJson),
  records.map(({ data }) => data),
  records.map(({ metadata }) => metadata),
  records[0]?.createdTicks,
]

/** A killed node holds the lock until Postgres has noticed its end, hence the short wait. */
const lockNode = async (client: pg.Client): Promise<void> => {
  const deadlineMs = performance.now() + LOCK_WAIT_MS
  for (;;) {
    const { rows } = await client.query<{ held: boolean }>('select pg_try_advisory_lock($1) as held', [
      ADVISORY_LOCKS.embeddedEventStore,
    ])
    if (rows[0]?.held === true) return
    if (performance.now() > deadlineMs) throw new NodeAlreadyRunning()
    await sleep(LOCK_RETRY_MS)
  }
}

export type StreamPage = {
  readonly stream: string
  readonly direction: Direction
  /** Both inclusive; the page begins at `from`. */
  readonly from: bigint
  readonly to: bigint
  readonly limit: number
}

/** Reads of committed events, by pages. */
export type Reader = {
  query<Row>(name: string, text: string, values: readonly unknown[]): Promise<Row[]>
  streamPage(page: StreamPage): Promise<StoredRecord[]>
  /** After `position` forwards, before it backwards. */
  allPage(direction: Direction, position: bigint, limit: number): Promise<StoredRecord[]>
  end(): Promise<void>
}

export const openReader = (connectionString: string): Reader => {
  const pool = new pg.Pool({
    connectionString,
    application_name: 'eventstore-reader',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    max: READERS_MAX,
    options: PLANNER,
  })
  // The pool replaces a lost idle connection; without a listener its error would end the process.
  pool.on('error', () => undefined)
  const query = async <Row>(name: string, text: string, values: readonly unknown[]): Promise<Row[]> =>
    (await pool.query(queryOf(name, text, values))).rows as Row[]
  return {
    query,
    streamPage: async ({ stream, direction, from, to, limit }) => {
      const bounds = from < to ? [from, to] : [to, from]
      const name = `stream_${direction}`
      const rows = await query<Omit<EventRow, 'stream'>>(name, SELECT_STREAM[direction], [stream, ...bounds, limit])
      return rows.map(row => recordOf({ ...row, stream }))
    },
    allPage: async (direction, position, limit) =>
      (await query<EventRow>(`all_${direction}`, SELECT_ALL[direction], [position, limit])).map(recordOf),
    end: () => pool.end(),
  }
}
