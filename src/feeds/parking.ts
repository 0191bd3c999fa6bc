import {
  type Database,
  type EventStore,
  type Sql,
  type StoredEvent,
  type World,
  BrokerAccessDenied,
  Unavailable,
} from '../ports.ts'
import { backoffMs, timeNow } from '../lib/time.ts'
import {
  type EventReference,
  type Failure,
  firstPositionsOfKeys,
  insertDeadLetters,
  type DeadLetter,
  requestReplayOfAll,
  WAITS_BEHIND,
  deadLettersOfKey,
  reasonOf,
  recordFailedReplay,
  release,
  type DeadLetterWithRequest,
  requestedKeys,
} from './deadLetters.ts'
import type { SerialQueue } from '../lib/serialQueue.ts'
import { AT_ONCE_MS, type Timer } from './timer.ts'
import { EpochSuperseded } from './checkpoints.ts'

/**
 * Parking, the one mechanism of the publisher, the deliveries to subscriptions, the read models and the processes: an event
 * that cannot be processed waits in Postgres with every later event of its key, so none overtakes it and all other keys
 * continue.
 *
 *   flowing ── an event of the key cannot be processed ──▶ parked: it and every later event of the key wait
 *   parked  ── all of them are replayed or discarded, on request of an operator ──▶ flowing
 *
 * A dependency that does not answer parks nothing: the event is not the cause, and the failure passes. The users of parking
 * decide when an event is parked: for facts deliveryWithParking.ts, for read models readModelWriter.ts.
 *
 * The words for an event, here and where parking is used:
 *
 *   flowing   no event of its key is parked, so it is processed when it comes
 *   failed    it could not be processed, and is the first of its key to be parked
 *   poison    of a read model: an event that fails and is itself the cause (readModelWriter.ts)
 *   waiting   it is parked only because an earlier event of its key is; its row has no attempts
 *   parked    it has a row in the table, whether it failed or waits
 */

export type ParkingOptions = RequestHandlers & {
  /** The publisher, the id of a subscription, or the name of a read model or of a process. */
  readonly name: string
  readonly database: Database
  readonly world: Pick<World, 'now' | 'monotonicMs'>
  /** Shared with the batches of the feed, so a replayed event is not overtaken by a later one of its key. */
  readonly queue: SerialQueue
  /** Throws EpochSuperseded in an old epoch, which undoes the transaction that it is part of. */
  readonly fence: (sql: Sql) => Promise<void>
  /** Called with the rows before they are inserted, in the same transaction. */
  readonly beforeParking?: (rows: readonly DeadLetter[]) => Promise<void>
  /** Requests a replay of all dead letters at the start: a newer build may be able to process them. */
  readonly replaysAtStart?: boolean
  /** Wakes the loop that serves the requests; set when a key is parked. */
  readonly timer: Timer
}

export type Parking = {
  readonly isEmpty: () => boolean
  readonly isParked: (key: string) => boolean
  /** The position of the first event of the key that waits. */
  readonly firstPosition: (key: string) => bigint | undefined
  /** Rows for events. With `failure` they are of one key, and the first of them has failed; without it all of them wait. */
  readonly rowsOf: (events: readonly EventReference[], failure?: Failure) => DeadLetter[]
  readonly markParked: (rows: readonly DeadLetter[]) => void
  /** Runs `work`, and inserts the rows that it returns, in one transaction. */
  readonly parkInTransaction: (work: (sql: Sql) => Promise<readonly DeadLetter[]>) => Promise<void>
  /** Moves the checkpoint, and inserts the rows in the same transaction where there are any. */
  readonly parkAndMove: (rows: readonly DeadLetter[], move: (sql: Sql) => Promise<void>) => Promise<void>
  /** Runs `work` in a transaction that an old epoch cannot commit. */
  readonly fenced: (work: (sql: Sql) => Promise<void>) => Promise<void>
  /**
   * Serves requests: the events of a key in order, up to the first that fails or is not requested. Throws
   * EpochSuperseded.
   */
  readonly serveRequests: () => Promise<void>
}

/** Opened after the run has acquired its checkpoint: an older epoch can insert no more rows then. */
export const openParking = async (options: ParkingOptions): Promise<Parking> => {
  const { name, database, world, queue } = options
  if (options.replaysAtStart) await requestReplayOfAll(database.sql, name)
  const parkedKeys = await firstPositionsOfKeys(database.sql, name)
  const transactions = transactionsOf(options, parkedKeys)
  return {
    ...transactions,
    isEmpty: () => parkedKeys.size === 0,
    isParked: key => parkedKeys.has(key),
    firstPosition: key => parkedKeys.get(key),
    rowsOf: (events, failure) => {
      const first_failed_at = timeNow(world)
      return events.map((event, index) => ({
        ...event,
        delivery: name,
        ...(index === 0 && failure ? failure : WAITS_BEHIND),
        first_failed_at,
      }))
    },
    serveRequests: requestServer({ name, database, world, queue, parkedKeys, fenced: transactions.fenced }, options),
  }
}

const transactionsOf = (
  { database, fence, timer, beforeParking }: ParkingOptions,
  parkedKeys: ParkedKeys,
): Pick<Parking, 'markParked' | 'parkInTransaction' | 'parkAndMove' | 'fenced'> => {
  const markParked: Parking['markParked'] = rows => {
    for (const { key, position } of rows)
      if (position < (parkedKeys.get(key) ?? position + 1n)) parkedKeys.set(key, position)
    if (rows.length > 0) timer.setAt(AT_ONCE_MS)
  }
  const parkInTransaction: Parking['parkInTransaction'] = async work => {
    let rows: readonly DeadLetter[] = []
    await database.transaction(async sql => {
      rows = await work(sql)
      await beforeParking?.(rows)
      await insertDeadLetters(sql, rows)
    })
    markParked(rows)
  }
  return {
    markParked,
    parkInTransaction,
    parkAndMove: (rows, move) =>
      rows.length === 0
        ? move(database.sql)
        : parkInTransaction(async sql => {
            await move(sql)
            return rows
          }),
    fenced: work =>
      database.transaction(async sql => {
        await fence(sql)
        await work(sql)
      }),
  }
}

export const REQUESTS_POLL_MS = 500
const RETRY_MIN_MS = 1_000
const RETRY_MAX_MS = 60_000

/** Errors that pass by themselves, with a newer run, or when a setting of the broker is changed. */
export const isTransient = (error: unknown): boolean =>
  error instanceof Unavailable || error instanceof EpochSuperseded || error instanceof BrokerAccessDenied

/** The result of a request to replay or to discard an event. `commit` runs in the transaction that deletes the row of the event. */
type RequestResult =
  | { readonly ok: true; readonly commit?: (sql: Sql) => Promise<void> }
  | ({ readonly ok: false } & Failure)

/** The part of parking in which its users differ. */
type RequestHandlers = {
  /** Processes a dead letter again. An error that is not transient counts as one failed attempt. */
  readonly replay: (event: DeadLetter) => Promise<RequestResult>
  /** Runs in the transaction that deletes the row of a discarded event. */
  readonly discard?: (sql: Sql, event: DeadLetter) => Promise<void>
  /** Whether the event was replayed and its work is in flight: then it is not replayed again, and its row stays. */
  readonly isPending?: (event: DeadLetter) => boolean
}

/** The parked keys, each with the position of its first event. */
type ParkedKeys = Map<string, bigint>

type Fenced = Parking['fenced']

type RequestDependencies = Pick<ParkingOptions, 'name' | 'database' | 'world' | 'queue'> & {
  readonly parkedKeys: ParkedKeys
  readonly fenced: Fenced
}

type Retry = { readonly atMs: number; readonly failures: number }

/**
 * Whether a later attempt of this run may succeed. After a commit without an answer it is not known which events are
 * parked.
 */
const passesInThisRun = (error: unknown): boolean =>
  error instanceof Unavailable
    ? error.dependency !== 'database' || error.effect === 'none'
    : error instanceof BrokerAccessDenied

/**
 * Serves the keys that have a request, in the order of their first events. A round ends at the first key whose
 * dependency does not answer, which may concern all keys; later rounds leave it out until its growing pause is over.
 */
const requestServer = (dependencies: RequestDependencies, handlers: RequestHandlers): (() => Promise<void>) => {
  const { name, database, world, queue } = dependencies
  const retries = new Map<string, Retry>()

  const serve = async (key: string): Promise<boolean> => {
    const { atMs, failures } = retries.get(key) ?? { atMs: 0, failures: 0 }
    if (world.monotonicMs() < atMs) return true
    try {
      await queue(() => serveKey(dependencies, handlers, key))
      retries.delete(key)
      return true
    } catch (error) {
      if (!passesInThisRun(error)) throw error
      const pauseMs = backoffMs(failures, RETRY_MIN_MS, RETRY_MAX_MS)
      retries.set(key, { atMs: world.monotonicMs() + pauseMs, failures: failures + 1 })
      return false
    }
  }

  return async () => {
    for (const key of await requestedKeys(database.sql, name)) if (!(await serve(key))) return
  }
}

const serveKey = async (
  { name, database, parkedKeys, fenced }: RequestDependencies,
  handlers: RequestHandlers,
  key: string,
): Promise<void> => {
  // An event that came to wait after the request is replayed with the one that it waits for.
  let isReplayed = false
  for (const event of await deadLettersOfKey(database.sql, name, key)) {
    if (handlers.isPending?.(event)) continue
    const isRequested = event.requested !== null || isReplayed
    if (!isRequested || !(await serveOne(handlers, fenced, event))) {
      parkedKeys.set(key, event.position)
      return
    }
    isReplayed = event.requested !== 'discard'
  }
  parkedKeys.delete(key)
}

/** Replays or discards an event, as requested; false when that failed, so the event stays parked. */
const serveOne = async (handlers: RequestHandlers, fenced: Fenced, event: DeadLetterWithRequest): Promise<boolean> => {
  const failure = await execute(handlers, fenced, event).catch((error: unknown): Failure => {
    if (isTransient(error)) throw error
    return { reason: reasonOf(error), attempts: 1 }
  })
  if (failure) await fenced(sql => recordFailedReplay(sql, event, failure))
  return failure === undefined
}

/** Executes the request and deletes the row of the event; returns the failure of a replay. */
const execute = async (
  { replay, discard, isPending }: RequestHandlers,
  fenced: Fenced,
  event: DeadLetterWithRequest,
): Promise<Failure | undefined> => {
  const result: RequestResult =
    event.requested === 'discard' ? { ok: true, commit: async sql => discard?.(sql, event) } : await replay(event)
  if (!result.ok) return { reason: result.reason, attempts: result.attempts }
  if (isPending?.(event)) return undefined
  await fenced(async sql => {
    await result.commit?.(sql)
    await release(sql, event)
  })
  return undefined
}

/** Serves the requests for these parkings until the signal: while an event is parked, every REQUESTS_POLL_MS. */
export const serveRegularly = async (
  parkings: () => readonly Pick<Parking, 'isEmpty' | 'serveRequests'>[],
  timer: Timer,
  signal: AbortSignal,
  onServed: () => void = () => undefined,
): Promise<void> => {
  while (!signal.aborted) {
    if (parkings().some(parking => !parking.isEmpty())) timer.setAt(AT_ONCE_MS)
    await timer.wait(signal, REQUESTS_POLL_MS)
    for (const parking of parkings()) {
      if (signal.aborted || parking.isEmpty()) continue
      await parking.serveRequests()
      onServed()
    }
  }
}

/** Reads the stored event of a parked one. Throws when the store no longer has it. */
export const storedEventOf = async (
  store: Pick<EventStore, 'readStream'>,
  { stream, revision, position }: EventReference,
): Promise<StoredEvent> => {
  // The position is that of the row, since not every store returns it for an event that is read from its stream.
  for await (const event of store.readStream(stream, { from: revision, limit: 1 })) return { ...event, position }
  throw new Error(`${stream} has no event ${revision} any more.`)
}
