import { BrokerAccessDenied, type Database, type Sql, Unavailable, type World } from '../ports.ts'
import { EpochSuperseded } from './checkpoints.ts'
import {
  type Failure,
  type DeadLetter,
  deadLettersOfKey,
  reasonOf,
  recordFailedReplay,
  release,
  type DeadLetterWithRequest,
  requestedKeys,
} from './deadLetters.ts'
import type { SerialQueue } from '../lib/serialQueue.ts'
import { AT_ONCE_MS, type Timer } from './timer.ts'

/**
 * Serves the requests of operators to replay or to discard dead letters (parking.ts). A key whose request meets a dependency
 * that does not answer is tried again by itself, after pauses that grow: the other keys, and the run of the feed, continue.
 */

export const REQUESTS_POLL_MS = 500
const RETRY_MIN_MS = 1_000
const RETRY_MAX_MS = 60_000

/**
 * Errors of which the event is not the cause: they pass by themselves, with a newer run of the feed, or after an operator has
 * changed a setting of the broker.
 */
export const isTransient = (error: unknown): boolean =>
  error instanceof Unavailable || error instanceof EpochSuperseded || error instanceof BrokerAccessDenied

/** The result of a request to replay or to discard an event. `commit` runs in the transaction that deletes the row of the event. */
export type RequestResult =
  | { readonly ok: true; readonly commit?: (sql: Sql) => Promise<void> }
  | ({ readonly ok: false } & Failure)

/** The part of parking in which its users differ. */
export type RequestHandlers = {
  /** Processes a dead letter again. An error that is not transient counts as one failed attempt. */
  readonly replay: (event: DeadLetter) => Promise<RequestResult>
  /** Runs in the transaction that deletes the row of a discarded event. */
  readonly discard?: (sql: Sql, event: DeadLetter) => Promise<void>
  /** Whether the event was replayed and its work is under way: then it is not replayed again, and its row stays. */
  readonly isPending?: (event: DeadLetter) => boolean
}

/** The parked keys, each with the position of its first event. */
export type ParkedKeys = Map<string, bigint>

type Fenced = (work: (sql: Sql) => Promise<void>) => Promise<void>

export type RequestDependencies = {
  readonly name: string
  readonly database: Database
  readonly world: Pick<World, 'monotonicMs'>
  readonly queue: SerialQueue
  readonly parkedKeys: ParkedKeys
  readonly fenced: Fenced
}

type Retry = { readonly atMs: number; readonly pauseMs: number }

/**
 * Whether the failure is over by a later attempt of the same run. After a commit without an answer it is not known which
 * events are parked, so that the next run reads them again.
 */
const passesInThisRun = (error: unknown): boolean =>
  error instanceof Unavailable
    ? error.dependency !== 'database' || error.effect === 'none'
    : error instanceof BrokerAccessDenied

/**
 * Serves the keys that have a request, in the order of their first events. It ends at the first key that meets a dependency
 * which does not answer, and leaves that key out until its pause is over: the cause may concern all keys, or this one alone.
 */
export const requestServer = (dependencies: RequestDependencies, handlers: RequestHandlers): (() => Promise<void>) => {
  const { name, database, world, queue } = dependencies
  const retries = new Map<string, Retry>()

  const serve = async (key: string): Promise<boolean> => {
    const { atMs, pauseMs } = retries.get(key) ?? { atMs: 0, pauseMs: RETRY_MIN_MS }
    if (world.monotonicMs() < atMs) return true
    try {
      await queue(() => serveKey(dependencies, handlers, key))
      retries.delete(key)
      return true
    } catch (error) {
      if (!passesInThisRun(error)) throw error
      retries.set(key, { atMs: world.monotonicMs() + pauseMs, pauseMs: Math.min(2 * pauseMs, RETRY_MAX_MS) })
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

/** Replays or discards an event, as requested; false when that failed, so that the event stays parked. */
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

type ServedParking = { readonly isEmpty: () => boolean; readonly serveRequests: () => Promise<void> }

/** Serves the requests for these parkings until the signal: while an event is parked, every REQUESTS_POLL_MS. */
export const serveRegularly = async (
  parkings: () => readonly ServedParking[],
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
